// `npm run bench -- golden`: what a minute costs in which every cron is due at once, and one in which none is. A real registry, the embedded API
// server in a process of its own, and the tick as cron-tick runs it; the events it sends are counted instead of posted.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { tick } from '#shared/resources/sweep.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { connect, makeEach } from '#test/bench/connect.ts';
import { toTable } from '#test/bench/table.ts';
import { aGoldenCron, dueTime, settledStatus } from '#test/bench/golden/crons.ts';
import { type CountedKube, countCalls } from '#test/bench/golden/count.ts';
import { startServerProcess } from '#test/support/api-server/process.ts';
import { pushDisk, retag } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { nothingElse } from '#test/support/reconcile.ts';

const namespace = 'golden-images';

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: { crons: { type: 'string', default: '10000' }, references: { type: 'string', default: '500' } },
  });
  if (!hasRegistry()) return;
  const count = { crons: Number(values.crons), references: Number(values.references) };
  const dataDir = await mkdtemp(join(tmpdir(), 'bullion-bench-golden-'));
  const server = startServerProcess({ dataDir });
  const registry = await startRegistry();
  try {
    const { kube } = await connect(dataDir, await server.ready);
    const digest = await fillRegistry(registry, count.references);
    await fillCluster(kube, { registry, digest, ...count });
    console.log(await measure(kube, registry, count));
  } finally {
    await registry.close();
    await server.kill();
    await rm(dataDir, { recursive: true, force: true });
  }
};

/** One image under as many tags as there are references: what is asked is the tag, whatever it leads to. */
const fillRegistry = async ({ host }: TestRegistry, references: number): Promise<string> => {
  const target = { host, repository: 'golden/disk' };
  const { digest } = await pushDisk(target, Buffer.alloc(4096, 7), 'v0');
  for (let index = 1; index < references; index += 1) await retag(target, 'v0', `v${index}`);
  return digest;
};

interface Filling {
  readonly registry: TestRegistry;
  readonly digest: string;
  readonly crons: number;
  readonly references: number;
}

/** Crons that came to rest: imported, asked before, and not due before `dueTime`. */
const fillCluster = async (kube: KubeClient, { registry, digest, crons, references }: Filling): Promise<void> => {
  await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await makeEach(crons, async (index) => {
    const url = `docker://${registry.host}/golden/disk:v${index % references}`;
    const cron = aGoldenCron({ namespace, index, url, digest });
    const made = await kube.create<DataImportCron>(dataImportCronKind.type, cron);
    await kube.replace(
      dataImportCronKind.type,
      { ...made, status: settledStatus(cron, digest) },
      { subresource: 'status' },
    );
  });
};

interface Minute {
  readonly ms: number;
  readonly kube: CountedKube;
  readonly requests: number;
  readonly events: number;
}

const runMinute = async (kube: KubeClient, registry: TestRegistry, time: number): Promise<Minute> => {
  const counted = countCalls(kube);
  let events = 0;
  const now = () => time;
  const deps: ReconcileDeps = {
    ...nothingElse,
    kube: counted.client,
    backends,
    settings: defaultSettings,
    now,
    log: silentLogger,
    templates: { mode: 'auto', namespace: 'kubevirt-os-images', architecture: 'amd64' },
    observe: createObserver({
      kube: counted.client,
      allowedAddresses: ['127.0.0.0/8'],
      registries: () => Promise.resolve({ plainRegistries: [registry.host] }),
      architecture: 'amd64',
      now,
    }),
    send: () => {
      events += 1;
      return Promise.resolve({ isDelivered: true } as never);
    },
  };
  registry.requests.length = 0;
  const began = performance.now();
  await tick(deps);
  return { ms: performance.now() - began, kube: counted, requests: registry.requests.length, events };
};

const measure = async (
  kube: KubeClient,
  registry: TestRegistry,
  { crons, references }: { readonly crons: number; readonly references: number },
): Promise<string> => {
  const quiet = await runMinute(kube, registry, dueTime - 60_000);
  const busy = await runMinute(kube, registry, dueTime);
  const row = (name: string, { ms, kube: calls, requests, events }: Minute): readonly string[] => [
    name,
    ms.toFixed(0),
    String(calls.listsOf(dataImportCronKind.type.plural)),
    String(calls.reads()),
    String(calls.writes()),
    String(requests),
    String(events),
  ];
  return toTable([
    [
      `${crons} crons, ${references} references`,
      'ms',
      'pages of crons',
      'API reads',
      'API writes',
      'registry requests',
      'events',
    ],
    row('none due', quiet),
    row('all due in one minute', busy),
  ]);
};
