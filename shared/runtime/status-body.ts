// How Kubernetes says that something failed: the body of an answer as kubectl, virtctl and client-go read it.
export const statusBody = (code: number, reason: string, message: string): string =>
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, message, code });
