// The kubeconfig of a function that a test starts itself.

/** As text; `cluster` adds fields such as the CA. Default for `server`: an unreachable address. */
export const kubeconfigFor = (server = 'https://127.0.0.1:1', cluster: object = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });
