// What a record holds: objects of every kind, at their end and on the way there. `npm run record` makes them, and the upgrade test drives them on.
import { createHash } from 'node:crypto';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '#shared/api/object.ts';
import type { Answer, OriginRequest } from '#test/support/origin.ts';

/** Not the name of anything else: cluster-scoped objects belong to a record if they mention it. */
export const namespace = 'left-by-a-release';

const kib = 1024;
export const diskBytes = 2048 * kib;

/** Some bytes, and zeroes. Records contain it: another one would not be what they expect. */
export const disk = Buffer.alloc(diskBytes);
for (let at = 0; at < 8 * kib; at += 32) createHash('sha256').update(`disk ${at}`).digest().copy(disk, at);
disk.copy(disk, diskBytes - 8 * kib, 0, 8 * kib);

type Status = Readonly<Record<string, unknown>>;
export interface Loose extends KubeObject {
  readonly spec?: unknown;
  readonly status?: Status;
}

export interface Left {
  readonly type: ResourceType<Loose>;
  readonly name: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec: (origin: string) => object;
  /** When the record may be made. */
  readonly isLeft: (object: Loose) => boolean;
  /** Where the next release has to bring it; the same for what is finished. */
  readonly isOver: (object: Loose) => boolean;
  /** Claim with the disk at the end. */
  readonly claim?: (object: Loose) => string | undefined;
}

/** What the server of images answers: to the release before, and to the next one. */
export const answerTo =
  (when: 'before' | 'after') =>
  ({ path }: OriginRequest): Answer => {
    const headers = { etag: '"one"', 'content-length': diskBytes, 'content-type': 'application/octet-stream' };
    if (path === '/missing.raw') return { status: 404 };
    if (path === '/disk.raw' || when === 'after') return { headers, body: disk };
    if (path === '/busy.raw') return { status: 503 };
    return { headers, body: disk, stallAfter: path === '/looked-at.raw' ? 64 * kib : diskBytes - kib };
  };

const loosely = (type: unknown): ResourceType<Loose> => type as ResourceType<Loose>;
const has =
  (field: string, ...values: readonly string[]) =>
  ({ status }: Loose): boolean =>
    values.includes(String(status?.[field]));
const reasonOf = ({ status }: Loose, type = 'Ready'): string | undefined => {
  const conditions = (status?.['conditions'] ?? []) as readonly { readonly type: string; readonly reason?: string }[];
  return conditions.find((condition) => condition.type === type)?.reason;
};
const statusOf = ({ status = {} }: Loose): Status => (status['detail'] as Status | undefined) ?? status;
/** Its Job of this role has been started; one that imports has also told of bytes. */
const isAt =
  (role: 'inspect' | 'import') =>
  (object: Loose): boolean => {
    const { children, transfer } = statusOf(object) as {
      readonly children?: { readonly job?: string };
      readonly transfer?: { readonly receivedBytes?: number };
    };
    return children?.job?.startsWith(role) === true && (role === 'inspect' || (transfer?.receivedBytes ?? 0) > 0);
  };
const ownName = ({ metadata }: Loose): string => metadata.name;
const volumeOf = ({ status }: Loose): string | undefined =>
  (status?.['children'] as { readonly volume?: string } | undefined)?.volume;

interface Sort {
  readonly type: ResourceType<Loose>;
  readonly isOver: (object: Loose) => boolean;
  readonly claim: (object: Loose) => string | undefined;
}
const hyperCloud: Sort = {
  type: loosely(hyperCloudImageKind.type),
  isOver: has('state', 'Available'),
  claim: volumeOf,
};
const harvester: Sort = {
  type: loosely(harvesterImageKind.type),
  isOver: (object) => reasonOf(object, 'Imported') === 'Imported',
  claim: volumeOf,
};
const dataVolume: Sort = { type: loosely(dataVolumeKind.type), isOver: has('phase', 'Succeeded'), claim: ownName };
const storage = { resources: { requests: { storage: `${diskBytes}` } } };
const from = (path: string) => (origin: string) => ({
  source: { http: `${origin}/${path}` },
  storageClassName: 'local',
});
const volumeFrom =
  (path: string, storageClassName = 'local') =>
  (origin: string) => ({ source: { http: { url: `${origin}/${path}` } }, storage: { ...storage, storageClassName } });
const imageFrom = (path: string, backend: string) => (origin: string) => ({
  backend,
  displayName: `${backend} ${path}`,
  sourceType: 'download',
  url: `${origin}/${path}`,
  ...(backend === 'backingimage' ? {} : { targetStorageClassName: 'local' }),
});

/** At its end. */
const finished = (sort: Sort, name: string, spec: Left['spec']): Left => ({ ...sort, name, spec, isLeft: sort.isOver });
/** In the middle. */
const unfinished = (sort: Sort, name: string, spec: Left['spec'], isLeft: Left['isLeft']): Left => ({
  ...sort,
  name,
  spec,
  isLeft,
});

const isWaiting = (object: Loose): boolean => reasonOf(object) !== undefined;
const completed = has('state', 'Completed');

/** In the order in which they are made; each after those that it needs. */
export const scene: readonly (readonly Left[])[] = [
  [
    finished(hyperCloud, 'image', from('disk.raw')),
    finished(harvester, 'harvester-csi', imageFrom('disk.raw', 'csi')),
    finished(harvester, 'harvester-cdi', imageFrom('disk.raw', 'cdi')),
    { ...finished(harvester, 'harvester-longhorn', imageFrom('disk.raw', 'backingimage')), claim: () => undefined },
    finished(dataVolume, 'volume', volumeFrom('disk.raw')),
    {
      type: hyperCloud.type,
      name: 'image-missing',
      spec: from('missing.raw'),
      isLeft: has('state', 'Error'),
      isOver: has('state', 'Error'),
    },
    {
      type: loosely(dataImportCronKind.type),
      name: 'golden',
      spec: (origin) => ({
        schedule: '0 */12 * * *',
        managedDataSource: 'golden',
        template: { spec: volumeFrom('disk.raw')(origin) },
      }),
      isLeft: (object) => reasonOf(object, 'UpToDate') === 'UpToDate',
      isOver: (object) => reasonOf(object, 'UpToDate') === 'UpToDate',
      claim: ({ status }) => (status?.['lastImportedPVC'] as { readonly name?: string } | undefined)?.name,
    },
  ],
  [
    {
      type: loosely(virtualMachinePvcKind.type),
      name: 'disk-of-image',
      spec: () => ({ virtualMachineImageName: 'image', capacity: { storage: `${diskBytes}` } }),
      isLeft: hyperCloud.isOver,
      isOver: hyperCloud.isOver,
      claim: ({ status }) => status?.['claimName'] as string | undefined,
    },
    {
      type: loosely(virtualMachineVolumeKind.type),
      name: 'volume-of-image',
      spec: () => ({ virtualMachineImage: { name: 'image' }, capacity: { storage: `${diskBytes}` } }),
      isLeft: hyperCloud.isOver,
      isOver: hyperCloud.isOver,
      claim: ({ status }) => status?.['claimName'] as string | undefined,
    },
    finished(dataVolume, 'clone', () => ({
      source: { pvc: { namespace, name: 'volume' } },
      storage: { ...storage, storageClassName: 'local' },
    })),
    {
      type: loosely(volumeExportKind.type),
      name: 'export',
      spec: () => ({ pvcName: 'volume', destination: { local: { storageClassName: 'local' } } }),
      isLeft: completed,
      isOver: completed,
    },
    {
      type: loosely(goldenImagePolicyKind.type),
      name: 'golden',
      spec: () => ({
        dataImportCrons: { names: ['golden'] },
        channels: [
          { name: 'candidate', dataSource: 'golden-candidate' },
          {
            name: 'stable',
            dataSource: 'golden-stable',
            after: { channel: 'candidate', soak: '1s', approval: 'manual' },
          },
        ],
      }),
      isLeft: ({ status }) => JSON.stringify(status).includes('WaitingForApproval'),
      isOver: ({ status }) => JSON.stringify(status).includes('WaitingForApproval'),
    },
    {
      type: loosely(downloaderKind.type),
      name: 'harvester-csi',
      spec: () => ({ imageName: 'harvester-csi' }),
      isLeft: has('status', 'Ready'),
      isOver: has('status', 'Ready'),
    },
  ],
  [
    unfinished(hyperCloud, 'image-moving', from('held.raw'), isAt('import')),
    unfinished(hyperCloud, 'image-looked-at', from('looked-at.raw'), isAt('inspect')),
    unfinished(hyperCloud, 'image-refused', from('busy.raw'), isWaiting),
    unfinished(harvester, 'harvester-moving', imageFrom('held.raw', 'csi'), isAt('import')),
    unfinished(harvester, 'harvester-cdi-moving', imageFrom('held.raw', 'cdi'), isWaiting),
    unfinished(harvester, 'harvester-new', imageFrom('busy.raw', 'backingimage'), isWaiting),
    unfinished(dataVolume, 'volume-moving', volumeFrom('held.raw'), isAt('import')),
    {
      ...dataVolume,
      name: 'volume-without-consumer',
      spec: volumeFrom('disk.raw', 'local-wffc'),
      isLeft: has('phase', 'PendingPopulation', 'WaitForFirstConsumer'),
      isOver: has('phase', 'PendingPopulation', 'WaitForFirstConsumer'),
      claim: () => undefined,
    },
    {
      ...dataVolume,
      name: 'volume-to-upload',
      spec: () => ({ source: { upload: {} }, storage: { ...storage, storageClassName: 'local' } }),
      isLeft: has('phase', 'UploadReady'),
      isOver: has('phase', 'UploadReady'),
      claim: () => undefined,
    },
  ],
];

export const everything: readonly Left[] = scene.flat();
