// The backing image and the storage class of an image. Called by the plans of this folder.
import { createHash } from 'node:crypto';
import { mayUseOf } from '#shared/access/permissions.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { type BackingImage, longhornDriver, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata, type ObjectMeta } from '#shared/api/object.ts';
import type { Image } from '#shared/backends/backend.ts';
import {
  foreignSecretProblem,
  secretAt,
  secretKey,
  type SecretName,
  secretStages,
} from '#shared/backends/rules/encryption.ts';

// Names of the backing image and the storage class of an image: from its UID, from its backup, or as Harvester named them.

/** Longest name in Longhorn. */
const maxNameLength = 40;

/** Candidates, the first that exists wins; `own` is the name for a new one. */
export interface Names {
  readonly own: string;
  readonly candidates: readonly string[];
}

type Named = Pick<Image, 'ref' | 'source'>;

/** The way Longhorn shortens long names: the end is replaced by a part of the SHA-512 of the whole. */
export const correctedName = (name: string): string => {
  const lower = name.toLowerCase();
  if (name.length <= maxNameLength) return lower;
  const suffix = `-${createHash('sha512').update(name).digest('hex').slice(0, 8)}`;
  return lower.slice(0, maxNameLength - suffix.length).replace(/-+$/, '') + suffix;
};

/** The name in its backup: volumes in backups refer to it, so a restored image must have it again. */
const restoreName = ({ source }: Named): string | undefined => {
  if (source?.type !== 'restore') return undefined;
  const name = new URLSearchParams(source.url.split('?')[1] ?? '').get('backingImage') ?? '';
  return /^[a-z0-9][a-z0-9_.-]+$/.test(name) ? name : undefined;
};

const namesOf = (own: string, legacy: readonly (string | undefined)[]): Names => ({
  own,
  candidates: [...new Set([...legacy.filter((name) => name !== undefined), own])],
});

export const backingImageNames = (image: Named): Names => {
  const { namespace = '', name, uid } = image.ref;
  const restored = restoreName(image);
  const legacy = `${namespace}-${name}`;
  return namesOf(restored ?? `vmi-${uid}`, [restored, legacy, correctedName(legacy), `vmi-${uid}`]);
};

export const storageClassNames = (image: Named): Names => {
  const { name, uid } = image.ref;
  const restored = restoreName(image);
  const ofBackup = restored === undefined ? undefined : `lh-${restored.replace(/^vmi-/, '')}`;
  return namesOf(ofBackup ?? `lh-${uid}`, [ofBackup, `lh-${uid}`, `longhorn-${name}`]);
};

// Parameters of the storage class for volumes of an image: decided once, from a template class. Pure.

type Parameters = Readonly<Record<string, string>>;

const defaults: Parameters = { numberOfReplicas: '3', staleReplicaTimeout: '30', migratable: 'true' };

/** Parameters that may differ from the defaults. Other parameters of the template do not apply to disks of an image. */
const allowed: readonly string[] = [
  'nodeSelector',
  'diskSelector',
  'numberOfReplicas',
  'staleReplicaTimeout',
  'dataLocality',
  'encrypted',
  ...secretStages.flatMap((stage) => [secretKey(stage, 'name'), secretKey(stage, 'namespace')]),
];

const permitted = (parameters: Parameters, keys = allowed): Parameters =>
  Object.fromEntries(Object.entries(parameters).filter(([key]) => keys.includes(key)));

const known: readonly string[] = [...allowed, ...Object.keys(defaults)];

export const backingImageOf = ({ parameters }: StorageClass): string | undefined => parameters?.['backingImage'];

/** A class of another driver has no valid parameters for Longhorn. */
const isTemplate = (storageClass: StorageClass | undefined): storageClass is StorageClass =>
  storageClass?.provisioner === longhornDriver && backingImageOf(storageClass) === undefined;

export const classParameters = (asked: Parameters | undefined, template: StorageClass | undefined): Parameters => ({
  ...defaults,
  ...permitted(isTemplate(template) ? (template.parameters ?? {}) : (asked ?? {})),
});

/** The parameters decided at admission. If admission was bypassed they are decided now, by the same rules. */
export const parametersOf = ({ storage }: Image, template: StorageClass | undefined): Parameters =>
  storage.classParameters === undefined
    ? classParameters(undefined, template)
    : permitted(storage.classParameters, known);

/** Why the class of an image must not be created: it would read a Secret that the author may not read; `undefined`: no problem. */
export const secretProblem = (
  { ref, grants }: Pick<Image, 'ref' | 'grants'>,
  parameters: Parameters,
): string | undefined =>
  foreignSecretProblem(parameters, { namespace: ref.namespace, mayUse: mayUseOf(ref.namespace, grants) });

/** Minimum of copies in Longhorn; `undefined` if the parameter is not a number. */
export const copiesIn = (parameters: Parameters): number | undefined => {
  const count = Number(parameters['numberOfReplicas']);
  return Number.isInteger(count) && count > 0 ? count : undefined;
};

/** The Secret with the encryption key; `undefined` if there is none. */
export const secretOf = (parameters: Parameters | undefined): SecretName | undefined =>
  secretAt(parameters, 'node-publish');

/** Back reference that Harvester's own tools read. */
export const imageIdAnnotation = 'harvesterhci.io/imageId';

export const imageIdOf = ({ ref }: Pick<Image, 'ref'>): string => `${ref.namespace ?? ''}/${ref.name}`;

/** An owner reference cannot cross namespaces, so there is no garbage collection: the image removes its children itself. */
export const marksOf = (image: Image, role: string): Pick<ObjectMeta, 'labels' | 'annotations'> => {
  const { labels, annotations: marks } = childMetadata(image.ref, role, '');
  return { labels: labels ?? {}, annotations: { ...marks, [imageIdAnnotation]: imageIdOf(image) } };
};

export interface BackingImageSource {
  readonly sourceType: NonNullable<BackingImage['spec']['sourceType']>;
  readonly parameters: Readonly<Record<string, string>>;
}

export const buildBackingImage = (
  image: Image,
  origin: BackingImageSource,
  { attempt, classParameters }: { readonly attempt: number; readonly classParameters: Record<string, string> },
): BackingImage => {
  const marks = marksOf(image, 'volume');
  return {
    apiVersion: 'longhorn.io/v1beta2',
    kind: 'BackingImage',
    metadata: {
      name: backingImageNames(image).own,
      namespace: longhornNamespace,
      ...marks,
      annotations: {
        ...marks.annotations,
        [annotations.attempt]: String(attempt),
        // The handled retry is recorded here because status is written later, or never after a crash.
        ...(image.retryToken === undefined ? {} : { [annotations.retry]: image.retryToken }),
      },
    },
    spec: {
      sourceType: origin.sourceType,
      sourceParameters: origin.parameters,
      minNumberOfCopies: copiesIn(classParameters) ?? 1,
      ...(image.checksum === undefined ? {} : { checksum: image.checksum.hex }),
    },
  };
};

export const buildStorageClass = (
  image: Image,
  backingImage: string,
  classParameters: Readonly<Record<string, string>>,
): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: storageClassNames(image).own, ...marksOf(image, 'class') },
  provisioner: longhornDriver,
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  volumeBindingMode: 'Immediate',
  parameters: { ...classParameters, backingImage, ...ofClone(image) },
});

/** Volumes of an encrypted clone need its Secret. */
const ofClone = ({ source }: Image): Readonly<Record<string, string>> =>
  source?.type === 'clone' && source.operation === 'encrypt' ? { backingImageDataSourceType: 'clone' } : {};

/** A backing image without the annotation is the first attempt. */
export const attemptOf = ({ metadata }: BackingImage): number => {
  const attempt = Number(metadata.annotations?.[annotations.attempt]);
  return Number.isInteger(attempt) && attempt > 0 ? attempt : 1;
};
