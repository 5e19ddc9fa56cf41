// Plans one object: pure. Safe to repeat; the current object decides, not its notification.
import { findCondition } from '#shared/api/conditions.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { HyperCloudImage } from '#shared/api/hypercloud/image.ts';
import type { Description } from '#shared/object-import/description.ts';
import type { ImportRule } from '#shared/object-import/rules.ts';

/** Labels of images and DataSources made from objects. */
export const objectLabels = {
  /** Hash of bucket and key: a key may not be a valid label value. */
  object: 'bullion.dev/object',
  version: 'bullion.dev/object-version',
} as const;
export const objectAnnotations = {
  bucket: 'bullion.dev/object-bucket',
  key: 'bullion.dev/object-key',
  displayName: 'bullion.dev/display-name',
  /** Names of the labels from metadata or sidecar: labels that are removed there are removed here. */
  labels: 'bullion.dev/object-labels',
} as const;

export interface ObjectId {
  readonly bucket: string;
  readonly key: string;
  /** Value of the object label. */
  readonly hash: string;
}

export interface Observed {
  readonly rule: ImportRule;
  readonly id: ObjectId;
  /** `undefined`: the object is gone. */
  readonly description: Description | undefined;
  /** Images made from the object, by its label. */
  readonly versions: readonly HyperCloudImage[];
  /** By its label, or by its name before it exists. */
  readonly dataSource: DataSource | undefined;
}

/** Differences to the desired labels; null: to be removed. */
export interface MarksPatch {
  readonly labels: Readonly<Record<string, string | null>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export type ImportAction =
  | { readonly do: 'create-image'; readonly image: HyperCloudImage }
  | { readonly do: 'create-data-source'; readonly dataSource: DataSource }
  | { readonly do: 'point'; readonly dataSource: DataSource; readonly claim: string }
  | { readonly do: 'mark-image'; readonly image: HyperCloudImage; readonly marks: MarksPatch }
  | { readonly do: 'mark-data-source'; readonly dataSource: DataSource; readonly marks: MarksPatch }
  | { readonly do: 'delete-image'; readonly image: HyperCloudImage }
  | { readonly do: 'delete-data-source'; readonly dataSource: DataSource }
  | { readonly do: 'complain'; readonly about: DataSource; readonly message: string };

const isReady = ({ status }: HyperCloudImage): boolean => findCondition(status?.conditions, 'Ready')?.status === 'True';
const versionOf = ({ metadata }: HyperCloudImage): string => metadata.labels?.[objectLabels.version] ?? '';
const claimOf = ({ status }: HyperCloudImage): string | undefined => status?.children?.volume;
const madeAt = ({ metadata }: HyperCloudImage): string => metadata.creationTimestamp ?? '';
const isOurs = ({ metadata }: DataSource, { hash }: ObjectId): boolean =>
  metadata.labels?.[objectLabels.object] === hash;

export const planImport = (observed: Observed): readonly ImportAction[] => {
  const { dataSource, id, description } = observed;
  if (dataSource !== undefined && !isOurs(dataSource, id))
    return description === undefined ? [] : [nameTaken(observed, dataSource)];
  if (description === undefined) return planGone(observed);
  const current = observed.versions.find((image) => versionOf(image) === description.version);
  return [
    ...(current === undefined ? [{ do: 'create-image', image: imageOf(observed, description) } as const] : []),
    ...planMarks(observed, description, current),
    ...planPointer(observed, description, current),
    ...planRetention(observed, current),
  ];
};

/** Labels and display name follow the object, even if its bytes are unchanged. */
const planMarks = (
  observed: Observed,
  description: Description,
  image: HyperCloudImage | undefined,
): readonly ImportAction[] => {
  const { dataSource } = observed;
  const ofImage = image && missingMarks(observed, description, image.metadata);
  const ofName = dataSource && missingMarks(observed, description, dataSource.metadata);
  return [
    ...(image === undefined || ofImage === undefined ? [] : [{ do: 'mark-image', image, marks: ofImage } as const]),
    ...(dataSource === undefined || ofName === undefined
      ? []
      : [{ do: 'mark-data-source', dataSource, marks: ofName } as const]),
  ];
};

/** `undefined`: up to date. */
const missingMarks = (
  observed: Observed,
  description: Description,
  { labels = {}, annotations = {} }: Pick<HyperCloudImage['metadata'], 'labels' | 'annotations'>,
): MarksPatch | undefined => {
  const wanted = marksOf(observed, description);
  const given = (annotations[objectAnnotations.labels] ?? '').split(',');
  const gone = given.filter((name) => name in labels && !(name in wanted.labels));
  const marks = {
    labels: { ...others(wanted.labels, labels), ...Object.fromEntries(gone.map((name) => [name, null])) },
    annotations: others(wanted.annotations, annotations),
  };
  return Object.keys(marks.labels).length + Object.keys(marks.annotations).length === 0 ? undefined : marks;
};

const others = (
  wanted: Readonly<Record<string, string>>,
  present: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(wanted).filter(([name, value]) => present[name] !== value));

/** If two objects have the same name, the first one keeps it. */
const nameTaken = ({ id, description }: Observed, dataSource: DataSource): ImportAction => {
  const owner = dataSource.metadata.annotations?.[objectAnnotations.key];
  const whose = owner === undefined ? 'with another owner' : `of object ${owner}`;
  const message = `object ${id.key} of bucket ${id.bucket} has the name ${description?.name} of an existing DataSource ${whose}: set another one in the metadata bullion-name of the object, or in a .json beside it`;
  return { do: 'complain', about: dataSource, message };
};

const planGone = ({ rule, versions, dataSource }: Observed): readonly ImportAction[] => {
  if (rule.onDelete === 'keep') return [];
  // The name is removed first: no clone starts from a version that is about to be removed.
  const pointer = dataSource === undefined ? [] : [{ do: 'delete-data-source', dataSource } as const];
  return [...pointer, ...versions.map((image) => ({ do: 'delete-image', image }) as const)];
};

/** The DataSource follows the object, and keeps its version until the new one is ready. */
const planPointer = (
  observed: Observed,
  description: Description,
  current: HyperCloudImage | undefined,
): readonly ImportAction[] => {
  const target = current !== undefined && isReady(current) ? claimOf(current) : undefined;
  if (target === undefined) return [];
  const { dataSource } = observed;
  if (dataSource === undefined)
    return [{ do: 'create-data-source', dataSource: dataSourceOf(observed, description, target) }];
  return dataSource.spec.source.pvc?.name === target ? [] : [{ do: 'point', dataSource, claim: target }];
};

/**
 * Other versions than the current one: incomplete ones are removed at once, because a replaced object supersedes its import; ready ones are
 * removed once the current one is ready and the DataSource points to it, except for the newest `keep`.
 */
const planRetention = (
  { rule, versions, dataSource }: Observed,
  current: HyperCloudImage | undefined,
): readonly ImportAction[] => {
  const others = versions.filter((image) => image !== current && image.metadata.deletionTimestamp === undefined);
  const used = dataSource?.spec.source.pvc?.name;
  const superseded = current === undefined ? [] : others.filter((image) => !isReady(image) && claimOf(image) !== used);
  const hasMoved = current !== undefined && isReady(current) && used === claimOf(current);
  const old = hasMoved
    ? others
        .filter(isReady)
        .toSorted((a, b) => madeAt(b).localeCompare(madeAt(a)))
        .slice(rule.keep)
    : [];
  return [...superseded, ...old].map((image) => ({ do: 'delete-image', image }));
};

const marksOf = ({ id }: Pick<Observed, 'id'>, description: Description) => ({
  labels: { ...description.labels, [objectLabels.object]: id.hash },
  annotations: {
    [objectAnnotations.bucket]: id.bucket,
    [objectAnnotations.key]: id.key,
    [objectAnnotations.displayName]: description.displayName,
    [objectAnnotations.labels]: Object.keys(description.labels).toSorted().join(','),
  },
});

const imageOf = (observed: Observed, description: Description): HyperCloudImage => {
  const { rule, id } = observed;
  const { labels, annotations } = marksOf(observed, description);
  return {
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineImage',
    metadata: {
      name: `${description.name}-${description.version}`,
      namespace: rule.namespace,
      labels: { ...labels, [objectLabels.version]: description.version },
      annotations,
    },
    spec: {
      source: { objectStore: { bucketName: id.bucket, objectName: id.key } },
      ...(rule.storageClassName === undefined ? {} : { storageClassName: rule.storageClassName }),
      ...(description.checksum === undefined ? {} : { checksum: description.checksum }),
    },
  };
};

const dataSourceOf = (observed: Observed, description: Description, claim: string): DataSource => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataSource',
  metadata: { name: description.name, namespace: observed.rule.namespace, ...marksOf(observed, description) },
  spec: { source: { pvc: { name: claim, namespace: observed.rule.namespace } } },
});
