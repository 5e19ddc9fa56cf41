// The kubeconfig of a local API server. Called by server.ts.
import { stringify } from 'yaml';

export const buildKubeconfig = (access: { readonly url: string; readonly caPem: string; readonly token: string }) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bullion',
    clusters: [
      {
        name: 'bullion',
        cluster: {
          server: access.url,
          'certificate-authority-data': Buffer.from(access.caPem).toString('base64'),
        },
      },
    ],
    users: [{ name: 'admin', user: { token: access.token } }],
    contexts: [{ name: 'bullion', context: { cluster: 'bullion', user: 'admin', namespace: 'default' } }],
  });
