// What would come of an object if it were applied: whether the cluster takes it, whether its source answers, what would be created first and why. By the
// same reading and planning as the functions, under the rights of who asks; nothing is written.
import { isDeepStrictEqual } from 'node:util';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { fieldManager } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { type Rows, claimRows, detailOf, orRow, rowsOf } from '#shared/catalogue/foresee-actions.ts';
import { policyRows } from '#shared/catalogue/foresee-policy.ts';
import type { VerifySignature } from '#shared/golden/signature/outcome.ts';
import type { Observe } from '#shared/golden/poll/observe.ts';
import { type CronSource, readCronSource } from '#shared/golden/source.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { isoTime, noClassReason, noClassStep } from '#shared/populate/state.ts';
import type { Reconciler, Resource } from '#shared/resources/reconciler.ts';
import { wantedBy } from '#shared/resources/tenant-limit/wanted.ts';
import { AppError } from '#shared/runtime/errors.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';

export interface Foreseen {
  readonly verdict:
    | 'would be created'
    | 'would be changed'
    | 'would not change'
    | 'would be refused'
    | 'is not known here';
  readonly rows: Rows;
}

export interface ForesightTools {
  readonly kube: KubeClient;
  readonly look: LookAtFile;
  readonly observe: Observe;
  readonly verify: VerifySignature;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Stores and uploads are set up for the functions; here it only matters that they are. */
const settings: PopulateSettings = {
  ...defaultSettings,
  objectStore: { endpoint: 'https://store.invalid', region: '', pathStyle: true },
  transferUrl: 'https://transfer.invalid',
};

export const servedTypeOf = ({ apiVersion, kind }: KubeObject): ResourceType | undefined =>
  [...servedKinds.map(({ type }) => type), persistentVolumeClaims as ResourceType].find(
    (type) => type.kind === kind && apiVersionOf(type) === apiVersion,
  );

const specOf = (object: KubeObject | undefined): unknown => (object as { readonly spec?: unknown } | undefined)?.spec;

export const foresee = async (tools: ForesightTools, object: KubeObject): Promise<Foreseen> => {
  const { kube } = tools;
  const type = servedTypeOf(object);
  if (type === undefined)
    return {
      verdict: 'is not known here',
      rows: [
        ['to do', 'Bullion does not serve its kind: kubectl apply --dry-run=server shows what the cluster would do'],
      ],
    };
  const before = await kube.get(type, object.metadata);
  let admitted: KubeObject;
  try {
    admitted = await kube.apply(type, object, { fieldManager, force: true, dryRun: true });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { verdict: 'would be refused', rows: [['because', detailOf(error)]] };
  }
  const isSame = before !== undefined && isDeepStrictEqual(specOf(before), specOf(admitted));
  const source = await sourceOf(tools, admitted);
  const steps = await stepsOf(tools, type, source.object);
  const known = new Set(steps.map(([, text]) => text));
  const classes = await orRow('not foreseen', () => classRows(kube, admitted));
  return {
    verdict: before === undefined ? 'would be created' : isSame ? 'would not change' : 'would be changed',
    rows: [...source.rows, ...steps, ...classes.filter(([, text]) => !known.has(text))],
  };
};

/** `undefined`: it names none, or wants a volume that is there already. */
const namedClass = (object: KubeObject): string | undefined => {
  if (object.kind !== persistentVolumeClaims.kind) return wantedBy(object)?.className;
  const { storageClassName, volumeName } = (object as PersistentVolumeClaim).spec;
  return volumeName === undefined ? storageClassName : undefined;
};

/** Functions find a missing class only when they make the claim, after steps that are not foreseen here. */
const classRows = async (kube: KubeClient, object: KubeObject): Promise<Rows> => {
  const name = namedClass(object) ?? '';
  if (name === '' || (await kube.get(storageClasses, { name })) !== undefined) return [];
  return [failing(noClassStep(name, 'this object'))];
};

const failing = ({ reason, message }: { readonly reason: string; readonly message: string }): Rows[number] => [
  'fails',
  `${reason}: ${message}`,
];

interface LookedAt {
  readonly rows: Rows;
  /** With what is known of its source. */
  readonly object: KubeObject;
}

interface FetchingResource extends Resource {
  readonly source?:
    | { readonly type: string; readonly url?: string; readonly from?: FetchingResource['source'] }
    | CronSource;
}

/** A file, an image of a registry, an object of a store; `undefined`: nothing that can be asked from here. */
const fetchedBy = (resource: FetchingResource): { readonly type: string; readonly url: string } | undefined => {
  const { source } = resource;
  const from = source !== undefined && 'from' in source ? source.from : source;
  return from !== undefined && 'url' in from && from.url !== undefined ? { type: from.type, url: from.url } : undefined;
};

const inspected = async ({ look }: ForesightTools, url: string): Promise<Rows> => {
  const found = await look(url);
  if (found.is !== 'found') return [['source', `not reached from here: ${found.reason}: ${found.message}`]];
  const { format, compression, size, virtualSize } = found.inspection;
  const packed = compression === 'none' ? '' : ` in ${compression}`;
  const disk = virtualSize === undefined ? 'a disk of unknown size' : `a disk of ${formatBytes(virtualSize)}`;
  return [
    ['source', `reached from here: ${format}${packed}${size === undefined ? '' : `, ${formatBytes(size)}`}, ${disk}`],
  ];
};

const sourceOf = async (tools: ForesightTools, object: KubeObject): Promise<LookedAt> => {
  const resource = reconcilerOf(object)?.read(object) as FetchingResource | undefined;
  if (resource === undefined) return { object, rows: [] };
  const fetched = fetchedBy(resource);
  const isCron = object.kind === dataImportCronKind.type.kind;
  if (!isCron && fetched?.type === 'http') return { object, rows: await inspected(tools, fetched.url) };
  const asked = isCron ? (resource.source as CronSource | undefined) : fetched && askedOf(fetched);
  return asked === undefined ? { object, rows: [] } : polled(tools, object, asked);
};

const polled = async (tools: ForesightTools, object: KubeObject, asked: CronSource): Promise<LookedAt> => {
  const observed = await tools.observe({ source: asked, namespace: object.metadata.namespace ?? '', known: {} });
  if (observed.is !== 'found') return { object, rows: [['source', `not reached from here: ${observed.message}`]] };
  const rows: Rows = [['source', `reached from here: ${observed.message} (${observed.digest})`]];
  const isCron = object.kind === dataImportCronKind.type.kind;
  return { rows, object: isCron ? withDigest(object, observed.digest) : object };
};

const askedOf = ({ type, url }: { readonly type: string; readonly url: string }): CronSource | undefined => {
  const read = readCronSource({ schedule: '', managedDataSource: 'plan', source: { [type]: { url } } });
  return 'value' in read ? read.value : undefined;
};

const withDigest = (object: KubeObject, digest: string): KubeObject => ({
  ...object,
  metadata: {
    ...object.metadata,
    annotations: { ...object.metadata.annotations, [cdiAnnotations.desiredDigest]: digest },
  },
});

/** The cluster as it would be with the object in it. */
const withObject = (kube: KubeClient, type: ResourceType, object: KubeObject): KubeClient => {
  const { namespace, name } = object.metadata;
  const isType = (other: Pick<ResourceType, 'plural' | 'group'>): boolean =>
    other.plural === type.plural && other.group === type.group;
  return {
    ...kube,
    get: async <T extends KubeObject>(asked: ResourceType<T>, key: Parameters<KubeClient['get']>[1]) =>
      isType(asked) && key.name === name && key.namespace === namespace ? (object as T) : kube.get(asked, key),
    listAll: async function* all<T extends KubeObject>(asked: ResourceType<T>, options: ListOptions = {}) {
      const isIt = ({ metadata }: KubeObject): boolean => metadata.name === name && metadata.namespace === namespace;
      const isAsked = isType(asked);
      for await (const one of kube.listAll(asked, options)) if (!isAsked || !isIt(one)) yield one;
      const isWithin = options.namespace === undefined || options.namespace === namespace;
      if (isAsked && isWithin && options.labelSelector === undefined) yield object as T;
    },
  };
};

/** The first step that a function would take. */
const stepsOf = async (tools: ForesightTools, type: ResourceType, object: KubeObject): Promise<Rows> => {
  const reconciler = reconcilerOf(object);
  if (reconciler === undefined)
    return type.kind === persistentVolumeClaims.kind ? claimRows(object as PersistentVolumeClaim) : [];
  const resource = reconciler.read(object);
  const refusal = reconciler.refusalOf(resource, backends, settings);
  if (refusal !== undefined) return [failing(refusal)];
  const around = { ...tools, kube: withObject(tools.kube, type, object) };
  const steps = await orRow('not foreseen', () => planned(around, { reconciler, object, count: 1 }));
  if (type.kind !== goldenImagePolicyKind.type.kind) return steps;
  const judged = await orRow('not foreseen', () => policyRows(around, object as GoldenImagePolicy));
  return [...judged, ...steps];
};

/** Steps that are followed to the claim: snapshots of its source come before it. */
const mostSteps = 3;

interface Step {
  readonly reconciler: Reconciler;
  readonly object: KubeObject;
  readonly count: number;
}

const planned = async (tools: ForesightTools, { reconciler, object, count }: Step): Promise<Rows> => {
  const resource = reconciler.read(object);
  const planner = reconciler.plannerOf(resource, backends);
  if (planner === undefined) return [];
  const { kube, look, now } = tools;
  const observed = await planner.check(kube, resource, { look, now: () => now });
  const { actions, state } = planner.plan(resource, observed, { now, settings });
  const acted = (await Promise.all(actions.map((action) => rowsOf(kube, action)))).flat();
  const snapshots = actions.flatMap((one) => (one.do === 'create' && isSnapshot(one.type) ? [one.object] : []));
  const [first] = snapshots;
  if (first === undefined || actions.length > snapshots.length || count >= mostSteps)
    return [
      ...acted,
      // A class that is missing is waited for, but not forever.
      state.phase === 'Failed' || state.reason === noClassReason
        ? failing(state)
        : ['then', `${state.phase === state.reason ? '' : `${state.phase}, `}${state.reason}: ${state.message}`],
    ];
  // As it will be once the snapshot is there.
  const later = { ...object, status: reconciler.toStatus(object, resource, state, isoTime(now)) };
  const taken = { ...first, status: { readyToUse: true } };
  const around = withObject(withObject(kube, reconciler.kind.type, later), volumeSnapshots as ResourceType, taken);
  return [...acted, ...(await planned({ ...tools, kube: around }, { reconciler, object: later, count: count + 1 }))];
};

const isSnapshot = ({ plural, group }: ResourceType): boolean =>
  plural === volumeSnapshots.plural && group === volumeSnapshots.group;
