// What the API server is asked for. Used by every transport.

/** Objects as JSON; and the keys its tokens are signed with, which it gives in a form of their own alone. */
export const accepted = 'application/json, application/jwk-set+json';
