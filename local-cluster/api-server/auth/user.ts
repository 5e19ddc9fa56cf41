// Who asks.

export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export const anonymous: User = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

/** Needs no authorisation. */
export const superGroup = 'system:masters';

export const isSuperuser = (user: User): boolean => user.groups.includes(superGroup);

/** The user of a service account, as tokens and RBAC subjects name it. */
export const serviceAccountUser = (namespace: string, name: string, uid: string): User => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  ...(uid === '' ? {} : { uid }),
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});
