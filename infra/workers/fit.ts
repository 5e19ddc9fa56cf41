// Which functions run as Workers too, and what holds the others back. The README table is made from it, and fit.test.ts holds it against what the
// functions import.

/** `worker`: a folder here. `held`: a module or package that the function needs, and that no Worker can run. */
export type Fit = { readonly worker: string; readonly how: string } | { readonly held: string; readonly why: string };

const ownSockets =
  'looks up the addresses of hosts that users name itself and connects only to those that are allowed, trusts authorities that Secrets and ConfigMaps hold, and goes through proxies: a Worker has only `fetch`, which does none of this';

/** By function. */
export const fits: Readonly<Record<string, Fit>> = {
  validate: { worker: 'admission', how: 'webhooks with a URL; the API server shows a token' },
  mutate: { worker: 'admission', how: 'webhooks with a URL; the API server shows a token' },
  metrics: { worker: 'metrics', how: 'Prometheus scrapes it, and shows a token' },
  initialize: { held: 'shared/clients/http/client.ts', why: `asks the sources of golden images: ${ownSockets}` },
  'cron-tick': { held: 'shared/clients/http/client.ts', why: `asks the sources of golden images: ${ownSockets}` },
  'import-object': {
    held: 'shared/clients/http/client.ts',
    why: `asks the object store, which is mostly inside: ${ownSockets}. The Worker \`r2-notifications\` tells it of objects`,
  },
  'sidecar-sync': {
    held: 'events/post.ts',
    why: 'is woken by the broker for each change of each child, and answers by events to it: over sockets inside the cluster, where the broker has no door for others',
  },
  'backup-metadata': {
    held: 'shared/clients/store/files.ts',
    why: 'writes into an NFS export that is mounted: a Worker has no file system',
  },
  transfer: {
    held: 'shared/exchange/upload/session.ts',
    why: 'passes bodies of any length between people and Jobs at addresses of pods, and serves an aggregated API behind client certificates: a Worker has neither those sockets nor that time',
  },
  'transfer-job': {
    held: 'shared/transfer/tool/run-tool.ts',
    why: 'writes volumes, and starts `qemu-img`: a Worker has neither files nor processes',
  },
};
