// Functions that also run as Workers, and what prevents the others. The README table is generated from it; fit.test.ts compares it with the
// imports of the functions, and lacks.test.ts verifies under workerd what is missing.

/** `worker`: a folder here. `held`: a module or package that the function needs and that Workers do not support. */
export type Fit = { readonly worker: string; readonly how: string } | { readonly held: string; readonly why: string };

const drivers =
  'Triggers with a URL, which show a token; the sources of golden images, and files that Longhorn is to fetch, are asked by `cron-tick` alone';

const ownSockets =
  'connects only to addresses that are allowed, trusts authorities that Secrets and ConfigMaps hold, and goes through proxies, all by sockets of its own: ' +
  '`node:tls` of Workers has no `getCACertificates` and trusts no `ca`, and `fetch` takes neither of the three';

/** By function. */
export const fits: Readonly<Record<string, Fit>> = {
  validate: { worker: 'admission', how: 'webhooks with a URL; the API server shows a token' },
  mutate: { worker: 'admission', how: 'webhooks with a URL; the API server shows a token' },
  metrics: { worker: 'metrics', how: 'Prometheus scrapes it, and shows a token' },
  initialize: { worker: 'initialize', how: drivers },
  'sidecar-sync': { worker: 'sidecar-sync', how: drivers },
  'cron-tick': { held: 'shared/clients/http/client.ts', why: `asks the sources of golden images: ${ownSockets}` },
  'import-object': {
    held: 'shared/clients/http/client.ts',
    why: `asks the object store: ${ownSockets}. The Worker \`r2-notifications\` tells it of objects`,
  },
  'backup-metadata': {
    held: 'shared/clients/store/folder-write.ts',
    why: 'writes into an NFS export that is mounted: what a Worker writes with `node:fs` is gone with its request. It asks object stores as `import-object` does',
  },
  console: {
    held: 'shared/clients/kube/create.ts',
    why: 'trusts the authority of its cluster, as its pod or a kubeconfig has it: `node:tls` of Workers trusts no `ca`',
  },
  transfer: {
    held: 'shared/exchange/access/caller.ts',
    why: "serves an aggregated API, where the API server is known by its client certificate: a Worker's request has no socket to ask. It also sends bodies on to Jobs at addresses of pods, which no Worker reaches",
  },
  'transfer-job': {
    held: 'shared/transfer/tool/run-tool.ts',
    why: 'writes volumes, and starts `qemu-img`: a Worker sees no volume, and `child_process.spawn` is not implemented there',
  },
};
