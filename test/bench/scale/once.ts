// One sweep, tick, scrape or admission in a process of its own, so that its memory is not that of another; prints what it took. Started by run.ts.
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { collect } from '#shared/metrics/collect.ts';
import { toText } from '#shared/metrics/metric.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { createTicker } from '#shared/resources/ticker.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { dueTime } from '#test/bench/golden/crons.ts';
import { aHyperCloudImage, ask } from '#test/support/admission.ts';
import { nothingElse } from '#test/support/reconcile.ts';

/** Before any cron is due. */
const now = (): number => dueTime - 60_000;

interface Way {
  readonly prepare?: () => Promise<unknown>;
  readonly run: () => Promise<unknown>;
}

const waysOver = (kube: KubeClient): Readonly<Record<string, Way>> => {
  const ticker = createTicker(Infinity);
  const tick = () => ticker({ ...nothingElse, kube, backends, settings: defaultSettings, now, log });
  return {
    nothing: { run: () => Promise.resolve() },
    sweep: { run: tick },
    // What the first tick creates has the second one sweep again.
    tick: { prepare: () => tick().then(tick), run: tick },
    scrape: { run: async () => toText(await collect({ kube, now, log })) },
    admission: { run: () => ask(createValidate({ kube, log }), '/validate', { object: aHyperCloudImage() }) },
  };
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
const received = (): number => [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0);
const { prepare, run } = waysOver(kube)[way]!;
await prepare?.();
asked.length = 0;
const before = { cpu: process.cpuUsage(), bytes: received() };
await run();
const { user, system } = process.cpuUsage(before.cpu);
const bytes = received() - before.bytes;
const taken = { asked, bytes, seconds: (user + system) / 1e6, mebibytes: process.resourceUsage().maxRSS / 1024 };
process.stdout.write(JSON.stringify(taken), () => process.exit());
