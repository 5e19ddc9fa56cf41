// How many disks were made from what channels offer, and how many of them hold another version: counted by the tick, and recorded in the
// status of policies. Every ten minutes, and once a channel has moved.
import {
  type GoldenImagePolicy,
  type GoldenImagePolicyStatus,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { checkRole, labels } from '#shared/api/names.ts';
import { type KubeObject, keyOf, isOfType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate, isChangedMeanwhile, allIfServed } from '#shared/clients/kube/tolerant.ts';
import { isoTime } from '#shared/populate/state.ts';
import { type Inventory, consumersOf } from '#shared/resources/consumers.ts';
import { outdatedDisks } from '#shared/resources/outdated-disks.ts';
import { reconcilers } from '#shared/resources/registry.ts';

const everyMs = 600_000;

type DiskCounts = NonNullable<GoldenImagePolicyStatus['disks']>;

const { type } = goldenImagePolicyKind;
const isDataSource = (object: KubeObject): object is DataSource => object.kind === dataSourceKind.type.kind;

/** Nothing was counted yet, or a channel has another version since. */
const isStale = ({ status }: GoldenImagePolicy): boolean => {
  const counted = Date.parse(status?.disks?.time ?? '');
  return Number.isNaN(counted) || (status?.channels ?? []).some(({ since = '' }) => Date.parse(since) > counted);
};

/** Once in each ten minutes. */
const isTurn = (now: number, before: number): boolean => Math.floor(now / everyMs) > Math.floor(before / everyMs);

const uidsOf = (objects: readonly KubeObject[]): ReadonlySet<string> =>
  new Set(objects.filter((object) => !isDataSource(object)).map(({ metadata }) => metadata.uid ?? ''));

/** Disks of other DataSources that point to the same version are not counted. */
export const countDisks = (policy: GoldenImagePolicy, inventory: Inventory): Pick<DiskCounts, 'total' | 'outdated'> => {
  const names = new Set(policy.spec.channels.map(({ dataSource }) => dataSource));
  const isChannel = ({ metadata }: KubeObject): boolean =>
    metadata.namespace === policy.metadata.namespace && names.has(metadata.name);
  const named = inventory.objects.filter(isDataSource).filter(isChannel);
  const disks = named.flatMap((source) => consumersOf(source, inventory).map(({ object }) => object));
  const outdated = outdatedDisks(inventory).filter(({ dataSource }) => isChannel(dataSource));
  return { total: uidsOf(disks).size, outdated: uidsOf(outdated.map(({ object }) => object)).size };
};

const write = async (kube: KubeClient, policy: GoldenImagePolicy, disks: DiskCounts): Promise<void> => {
  const counted = { ...policy, status: { ...policy.status, disks } };
  // One that was changed meanwhile is counted again, from what it is then.
  await tolerate(kube.replace(type, counted, { subresource: 'status' }), isChangedMeanwhile);
};

const readInventory = async (kube: KubeClient): Promise<Inventory> => {
  const objects: KubeObject[] = [];
  for (const { kind } of reconcilers) objects.push(...(await allIfServed(kube, kind.type)));
  const claims = await allIfServed(kube, persistentVolumeClaims);
  return {
    objects: objects.filter(isNoCheck),
    claims,
    snapshots: await allIfServed(kube, volumeSnapshots),
    machines: [],
  };
};

/** A throw-away clone is nobody's disk. */
export const isNoCheck = ({ metadata }: KubeObject): boolean => metadata.labels?.[labels.role] !== checkRole;

export interface DiskCounter {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  /** In milliseconds since the epoch; `before`: when it ran before. Default: a minute ago. */
  readonly run: (kube: KubeClient, now: number, before?: number) => Promise<void>;
}

export const createDiskCounter = (): DiskCounter => {
  const policies: GoldenImagePolicy[] = [];
  return {
    visit: (object) => {
      if (isOfType(object, type)) policies.push(object);
    },
    run: async (kube, now, before = now - 60_000) => {
      const due = policies.filter((policy) => isTurn(now, before) || isStale(policy));
      if (due.length === 0) return;
      const inventory = await readInventory(kube);
      for (const listed of due) {
        // The reconciler may have written it since the listing.
        const policy = await kube.get(type, keyOf(listed));
        if (policy === undefined) continue;
        const counts = countDisks(policy, inventory);
        const { total, outdated } = policy.status?.disks ?? {};
        const isNews = counts.total !== total || counts.outdated !== outdated || isStale(policy);
        if (isNews) await write(kube, policy, { ...counts, time: isoTime(now) });
      }
    },
  };
};
