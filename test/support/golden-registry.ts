// A local cluster whose crons poll disks in a real registry, for flows of golden images.
import { readFile } from 'node:fs/promises';
import { diskOf } from '#infra/local/demo/import.ts';
import type { CronSourceSpec, DataImportCron, DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenFlow, createGoldenFlow } from '#test/support/golden.ts';
import { type PushTarget, pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, startRegistry } from '#test/support/registry/server.ts';

/** Of each disk. */
const bytes = 64 * 1024;

export interface GoldenRegistry {
  readonly registry: TestRegistry;
  readonly cluster: TestCluster;
  readonly flow: GoldenFlow;
  readonly target: PushTarget;
  /** Pushes a disk with this noise under a tag. */
  readonly push: (tag: string, seed: string) => ReturnType<typeof pushDisk>;
  readonly urlOf: (tag: string) => string;
  /** Fields of a cron with that `source`. */
  readonly fed: (source: CronSourceSpec, storage?: object) => Partial<DataImportCronSpec>;
  /** A cron that polls the tag of its name and keeps one version. */
  readonly aCron: (name: string, over?: Partial<DataImportCronSpec>, storage?: object) => Promise<DataImportCron>;
  /** Content of a volume, in the length of a disk. */
  readonly contentOf: (claim: string, place?: string) => Promise<Buffer>;
  readonly close: () => Promise<void>;
}

/** With `namespace` and a namespace `elsewhere`. */
export const startGoldenRegistry = async (namespace: string): Promise<GoldenRegistry> => {
  const registry = await startRegistry();
  const target = { host: registry.host, repository: 'disks/fedora' };
  const cluster = await startTestCluster({ functionEnvironment: { PLAIN_REGISTRIES: registry.host } });
  const flow = createGoldenFlow(cluster.kube, namespace);
  for (const name of [namespace, 'elsewhere'])
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const urlOf = (tag: string) => `docker://${registry.host}/disks/fedora:${tag}`;
  const fed: GoldenRegistry['fed'] = (source, storage = {}) => ({
    template: { spec: { source, storage: { resources: { requests: { storage: '16Mi' } }, ...storage } } },
  });
  return {
    registry,
    cluster,
    flow,
    target,
    push: (tag, seed) => pushDisk(target, noise(seed, bytes), tag),
    urlOf,
    fed,
    aCron: (name, over = {}, storage = {}) =>
      flow.aCron(name, { importsToKeep: 1, ...fed({ registry: { url: urlOf(name) } }, storage), ...over }),
    contentOf: async (claim, place = namespace) =>
      (await readFile(await diskOf(cluster, { namespace: place, name: claim }))).subarray(0, bytes),
    close: async () => {
      await cluster.close();
      await registry.close();
    },
  };
};
