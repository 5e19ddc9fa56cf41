// The kubeconfig of a function that a test starts by itself.

/** As text; `cluster` says more of it, such as whom to trust. Left out, `server` is one that nobody answers for. */
export const kubeconfigFor = (server = 'https://127.0.0.1:1', cluster: object = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });
