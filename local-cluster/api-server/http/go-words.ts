// Translates errors of undici, TLS and sockets to the messages of Go. Called by all clients in the API server.

const unknownAuthority = 'tls: failed to verify certificate: x509: certificate signed by unknown authority';

/** By code. */
const wordings: Readonly<Record<string, (url: URL) => string>> = {
  ECONNREFUSED: ({ hostname, port }) => `dial tcp ${hostname}:${port || 443}: connect: connection refused`,
  ENOTFOUND: ({ hostname }) => `dial tcp: lookup ${hostname}: no such host`,
  ECONNRESET: () => 'EOF',
  UND_ERR_SOCKET: () => 'EOF',
  DEPTH_ZERO_SELF_SIGNED_CERT: () => unknownAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: () => unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () => unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: () => unknownAuthority,
};

interface Coded {
  readonly code?: string;
}

/** The error of a request to `url`. */
export const goWords = (error: unknown, url: string): string => {
  const { code = '', message, cause } = error as Error & Coded;
  const inner = (cause as Coded | undefined)?.code ?? code;
  return wordings[inner]?.(new URL(url)) ?? message;
};
