// Rules for storage classes that images and disks use, one per line. Faults in the original that Kubernetes accepts are only warnings.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import { longhornDriver } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { isEncrypted, secretAt, secretKey, secretStages } from '#shared/backends/rules/encryption.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { recognitionOf } from '#shared/populate/storage/capabilities.ts';
import {
  classAnnotationOf,
  classAnnotations,
  classPrefix,
  isDefaultClass,
  isShare,
} from '#shared/populate/storage/profile.ts';
import { faultIf } from '#shared/resources/rule.ts';
import { type AdmissionAnswer, refused } from '#shared/runtime/admission-function.ts';
import type { Fault } from '#shared/runtime/errors.ts';

interface ClassRequest {
  readonly storageClass: StorageClass;
  readonly isNew: boolean;
  readonly kube: KubeClient;
}

interface ClassRule {
  readonly id: string;
  readonly check: (request: ClassRequest) => readonly Fault[] | Promise<readonly Fault[]>;
}

const fieldOf = (key: string): string => `metadata.annotations[${key}]`;

/** The same Secret at each stage; the one for expansion may be missing. Parameters are immutable, so existing classes are not checked. */
const encryption: ClassRule['check'] = ({ storageClass: { parameters }, isNew }) => {
  if (!isNew || !isEncrypted(parameters)) return [];
  const first = secretAt(parameters, 'provisioner');
  return secretStages.flatMap((stage) => {
    const keys = (['name', 'namespace'] as const).map((part) => secretKey(stage, part));
    const isGiven = keys.some((key) => parameters?.[key] !== undefined);
    if (stage === 'node-expand' && !isGiven) return [];
    const secret = secretAt(parameters, stage);
    const field = `parameters[${keys[0]}]`;
    if (secret === undefined) return [{ field, message: `and ${keys[1]} are required to encrypt: name the Secret` }];
    const isOther = first !== undefined && (secret.name !== first.name || secret.namespace !== first.namespace);
    return faultIf(
      isOther,
      field,
      `refers to another Secret than ${secretKey('provisioner', 'name')}: use the same one`,
    );
  });
};

const hasAdvice = ({ metadata }: StorageClass): boolean =>
  Object.keys(metadata.annotations ?? {}).some((key) => key.startsWith(classPrefix));

const oldEngine: ClassRule['check'] = ({ storageClass }) =>
  faultIf(
    hasAdvice(storageClass) &&
      storageClass.provisioner === longhornDriver &&
      storageClass.parameters?.['dataEngine'] === 'v1',
    'metadata.annotations',
    `have no effect beside the parameter dataEngine=v1 of Longhorn: remove those that start with ${classPrefix}`,
  );

const volumeModes = ['Block', 'Filesystem'];
const accessModes = ['ReadWriteOnce', 'ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOncePod'];

const areModes = (text: string): boolean => {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(
    ([mode, modes]) =>
      volumeModes.includes(mode) && Array.isArray(modes) && modes.every((one) => accessModes.includes(one as string)),
  );
};

const wellFormed: ClassRule['check'] = async ({ storageClass, kube }) => {
  const [overhead, strategy, snapshotClass, modes] = (
    ['overhead', 'cloneStrategy', 'snapshotClass', 'modes'] as const
  ).map((which) => classAnnotationOf(storageClass, which));
  const isThere =
    snapshotClass === undefined ||
    (snapshotClass !== '' && (await kube.get(volumeSnapshotClasses, { name: snapshotClass })) !== undefined);
  return [
    ...faultIf(
      overhead !== undefined && !isShare(overhead),
      fieldOf(classAnnotations.overhead),
      'must be a share from 0 to 1 with three digits at most, such as 0.06',
    ),
    ...faultIf(
      strategy !== undefined && !['copy', 'snapshot', 'csi-clone'].includes(strategy),
      fieldOf(classAnnotations.cloneStrategy),
      'must be copy, snapshot or csi-clone',
    ),
    ...faultIf(
      strategy === 'snapshot' && snapshotClass === undefined,
      fieldOf(classAnnotations.snapshotClass),
      'is required to clone by snapshots',
    ),
    ...faultIf(!isThere, fieldOf(classAnnotations.snapshotClass), `snapshot class "${snapshotClass}" does not exist`),
    ...faultIf(
      modes !== undefined && !areModes(modes),
      fieldOf(classAnnotations.modes),
      'must be JSON of modes, such as {"Block":["ReadWriteOnce"]}',
    ),
  ];
};

/** A machine cannot be migrated if its volume is bound to one node. */
const locality: ClassRule['check'] = ({ storageClass: { provisioner, parameters }, isNew }) => {
  const value = parameters?.['dataLocality'];
  return faultIf(
    isNew && provisioner === longhornDriver && value !== undefined && !['disabled', 'best-effort'].includes(value),
    'parameters[dataLocality]',
    'must be disabled or best-effort: a machine on a volume of another kind cannot be moved',
  );
};

export const storageClassRules: readonly ClassRule[] = [
  { id: 'one-secret', check: encryption },
  { id: 'advice-followed', check: oldEngine },
  { id: 'advice-well-formed', check: wellFormed },
  { id: 'movable-disks', check: locality },
];

/** More classes than any cluster has. */
const pageSize = 200;

/** Warnings (class/known-driver, class/one-default): rejecting either broke installations, and Kubernetes itself accepts both. */
const adviceOn = async ({ storageClass, isNew, kube }: ClassRequest): Promise<readonly string[]> => {
  const { metadata, provisioner } = storageClass;
  const isUnknown =
    isNew &&
    recognitionOf(storageClass) !== 'RecognizedProvisioner' &&
    classAnnotationOf(storageClass, 'modes') === undefined;
  const others = isDefaultClass(storageClass)
    ? (await kube.list(storageClasses, { limit: pageSize })).items.filter(
        (one) => isDefaultClass(one) && one.metadata.name !== metadata.name,
      )
    : [];
  return [
    ...(isUnknown
      ? [
          `nothing is known about the driver ${provisioner}: DataVolumes must set their access modes, and images use Block and ReadWriteOnce, unless ${classAnnotations.modes} or a StorageProfile defines others`,
        ]
      : []),
    ...others
      .slice(0, 1)
      .map((one) => `storage class ${one.metadata.name} is the default as well: the newest one is used`),
  ];
};

export const checkClass = async (
  { object, operation }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  const request = { storageClass: object as StorageClass, isNew: operation === 'CREATE', kube };
  const faults = (await Promise.all(storageClassRules.map(async ({ check }) => check(request)))).flat();
  return faults.length > 0 ? refused('Invalid', faults) : { kind: 'allowed', warnings: await adviceOn(request) };
};
