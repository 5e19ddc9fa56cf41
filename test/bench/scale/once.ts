// One tick, scrape or admission in a process of its own, so that its memory is not that of another; prints what it took. Started by run.ts.
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { collect } from '#shared/metrics/collect.ts';
import { toText } from '#shared/metrics/metric.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { tick } from '#shared/resources/sweep.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { dueTime } from '#test/bench/golden/crons.ts';
import { aHyperCloudImage, ask } from '#test/support/admission.ts';
import { nothingElse } from '#test/support/reconcile.ts';

/** Before any cron is due. */
const now = (): number => dueTime - 60_000;

const ways: Readonly<Record<string, (kube: KubeClient) => Promise<unknown>>> = {
  nothing: () => Promise.resolve(),
  tick: (kube) => tick({ ...nothingElse, kube, backends, settings: defaultSettings, now, log }),
  scrape: async (kube) => toText(await collect({ kube, now, log })),
  admission: (kube) => ask(createValidate({ kube, log }), '/validate', { object: aHyperCloudImage() }),
};

const [kubeconfig = '', way = ''] = process.argv.slice(2);
const asked: string[] = [];
const sockets = new Set<Socket>();
subscribe('undici:request:create', (message) => {
  const { method, path } = (message as { readonly request: { readonly method: string; readonly path: string } })
    .request;
  asked.push(`${method} ${path}`);
});
subscribe('undici:client:connected', (message) => sockets.add((message as { readonly socket: Socket }).socket));

const kube = createKubeClient(loadKubeConfig(kubeconfig));
const before = process.cpuUsage();
await ways[way]?.(kube);
const { user, system } = process.cpuUsage(before);
const bytes = [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0);
const taken = { asked, bytes, seconds: (user + system) / 1e6, mebibytes: process.resourceUsage().maxRSS / 1024 };
process.stdout.write(JSON.stringify(taken), () => process.exit());
