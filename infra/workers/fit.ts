// Functions that also run as Workers, and what prevents the others. The README table is generated from it; fit.test.ts compares it with the
// imports of the functions, and lacks.test.ts verifies under workerd what is missing.

/** `worker`: a folder here. `held`: a module or package that the function needs and that Workers do not support. */
export type Fit = { readonly worker: string; readonly how: string } | { readonly held: string; readonly why: string };

const drivers =
  'Triggers with a URL send a token; only `cron-tick` polls the sources of golden images, and inspects files that Longhorn is to fetch';

const ownSockets =
  'it connects only to allowed addresses, trusts certificate authorities from Secrets and ConfigMaps, and uses proxies, which needs sockets of its own: ' +
  '`node:tls` of Workers has no `getCACertificates` and ignores `ca`, and `fetch` supports none of the three';

/** By function. */
export const fits: Readonly<Record<string, Fit>> = {
  validate: { worker: 'admission', how: 'webhooks with a URL; the API server sends a token' },
  mutate: { worker: 'admission', how: 'webhooks with a URL; the API server sends a token' },
  metrics: { worker: 'metrics', how: 'Prometheus scrapes it, and sends a token' },
  initialize: { worker: 'initialize', how: drivers },
  'sidecar-sync': { worker: 'sidecar-sync', how: drivers },
  'cron-tick': { held: 'shared/clients/http/client.ts', why: `polls the sources of golden images: ${ownSockets}` },
  'import-object': {
    held: 'shared/clients/http/client.ts',
    why: `reads the object store: ${ownSockets}. The Worker \`r2-notifications\` notifies it of objects`,
  },
  'backup-metadata': {
    held: 'shared/clients/store/folder-write.ts',
    why: 'writes to a mounted NFS export: files that a Worker writes with `node:fs` are lost at the end of the request. It reads object stores as `import-object` does',
  },
  console: {
    held: 'shared/clients/kube/create.ts',
    why: 'trusts the certificate authority of its cluster, from its pod or a kubeconfig: `node:tls` of Workers ignores `ca`',
  },
  transfer: {
    held: 'shared/exchange/access/caller.ts',
    why: 'serves an aggregated API, where the API server is authenticated by its client certificate: in a Worker, a request has no socket to read it from. It also forwards bodies to Jobs at addresses of pods, which no Worker can reach',
  },
  'boot-job': {
    held: 'shared/boot/run.ts',
    why: 'starts `qemu-system-x86_64`: `child_process.spawn` is not implemented in a Worker',
  },
  'transfer-job': {
    held: 'shared/transfer/tool/run-tool.ts',
    why: 'writes volumes, and starts `qemu-img`: a Worker has no volumes, and `child_process.spawn` is not implemented there',
  },
};
