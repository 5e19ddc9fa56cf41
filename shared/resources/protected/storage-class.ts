// A storage class must not be deleted while images use it. Images have its name as a label, so that one page per kind is enough.
import { isGranted } from '#shared/access/permissions.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import {
  type PersistentVolume,
  persistentVolumes,
  type StorageClass,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, ownerOf } from '#shared/api/object.ts';
import {
  foreignSecretsIn,
  isEncrypted,
  secretAt,
  type SecretName,
  secretStages,
} from '#shared/backends/rules/encryption.ts';
import { toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

/** Enough for a message. */
const most = 5;

const usersAmong = async <T extends ImageObject>(
  dialect: ImageDialect<T>,
  name: string,
  kube: KubeClient,
): Promise<readonly string[]> => {
  const labelSelector = `${labels.storageClass}=${toDisplayNameLabel(name)}`;
  const { items } = await kube.list(dialect.kind.type, { labelSelector, limit: most });
  // The label is a hint: users can set it.
  const users = items.filter(
    (item) => item.metadata.deletionTimestamp === undefined && dialect.toImage(item).storage.className === name,
  );
  return users.map(({ metadata }) => `${dialect.kind.singular} ${metadata.namespace ?? ''}/${metadata.name}`);
};

export const keepClassInUse = async ({ name = '' }: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const users = [
    ...(await usersAmong(harvesterImages, name, kube)),
    ...(await usersAmong(hyperCloudImages, name, kube)),
  ];
  if (users.length === 0) return allowed;
  return refused('Forbidden', [], `storage class ${name} is used by images: ${users.join(', ')}; delete those first`);
};

export const keepReservedClass = ({ name = '', oldObject }: AdmissionRequest): AdmissionAnswer =>
  oldObject?.metadata.annotations?.[harvesterAnnotations.reservedClass] === 'true'
    ? refused(
        'Forbidden',
        [],
        `storage class ${name} is reserved by the annotation ${harvesterAnnotations.reservedClass}`,
      )
    : allowed;

/** The label that finds the images of a class. */
export const withClassLabel = <T extends KubeObject>(object: T, className: string | undefined): T =>
  className === undefined
    ? object
    : {
        ...object,
        metadata: {
          ...object.metadata,
          labels: { ...object.metadata.labels, [labels.storageClass]: toDisplayNameLabel(className) },
        },
      };

// The key of encrypted volumes must not be deleted or changed while a class with it, or a volume, exists: without it their data is lost
// (protected/encryption-key-in-use). A class that was created for an image refers only to Secrets that its author may read.

/** Fields of a Secret with a key: Longhorn's, and Ceph's. The webhook matches on them, so that no other Secret is ever sent to us. */
export const encryptionKeyFields = ['CRYPTO_KEY_VALUE', 'encryptionPassphrase'] as const;

/** Fields required to open a volume. Ciphers and sizes are recorded in the volume itself, and may change for new ones. */
export const neededFields: readonly string[] = [...encryptionKeyFields, 'CRYPTO_KEY_PROVIDER'];

type Data = Readonly<Record<string, string>>;

/** More than any cluster has. */
const [mostClasses, mostVolumes] = [500, 5000];

const dataOf = (object: KubeObject | undefined): Data => (object as { readonly data?: Data } | undefined)?.data ?? {};

const changedFields = ({ object, oldObject }: AdmissionRequest): readonly string[] => {
  const [before, now] = [dataOf(oldObject), dataOf(object)];
  // Writing an existing value again (the provider defaults to "secret") is not a change.
  return neededFields.filter((field) => (before[field] ?? '') !== (now[field] ?? '') && !isDefault(before, now, field));
};

const defaultProvider = Buffer.from('secret').toString('base64');
const isDefault = (before: Data, now: Data, field: string): boolean =>
  field === 'CRYPTO_KEY_PROVIDER' &&
  [before[field], now[field]].every((value) => value === undefined || value === '' || value === defaultProvider);

const isSame = (a: Partial<SecretName> | undefined, b: SecretName): boolean =>
  a?.name === b.name && a.namespace === b.namespace;

/** A class may belong to an image whose author had no permission for the Secret, or whose image is gone. */
const holds = async (storageClass: StorageClass, secret: SecretName, kube: KubeClient): Promise<boolean> => {
  const owner = ownerOf(storageClass);
  if (owner === undefined || owner.namespace === secret.namespace) return true;
  const image = await kube.get(harvesterImageKind.type, { namespace: owner.namespace, name: owner.name });
  if (image?.metadata.uid !== owner.uid) return false;
  const named = foreignSecretsIn(storageClass.parameters, owner.namespace).filter((one) => isSame(one, secret));
  return named.every((one) => isGranted(image, one));
};

const refsOf = ({ spec: { csi } }: PersistentVolume): readonly (Partial<SecretName> | undefined)[] => [
  csi?.nodeStageSecretRef,
  csi?.nodePublishSecretRef,
  csi?.nodeExpandSecretRef,
  csi?.controllerExpandSecretRef,
];

const namesSecret = ({ parameters }: StorageClass, secret: SecretName): boolean =>
  isEncrypted(parameters) && secretStages.some((stage) => isSame(secretAt(parameters, stage), secret));

/** The user of the Secret, for a message: a class, or a volume whose class is gone or has a templated Secret name. */
const findUser = async (secret: SecretName, kube: KubeClient): Promise<string | undefined> => {
  const { items } = await kube.list(storageClasses, { limit: mostClasses });
  const naming = items.filter((one) => namesSecret(one, secret));
  const isHeld = await Promise.all(naming.map(async (one) => holds(one, secret, kube)));
  const names = naming.filter((_, at) => isHeld[at]).map(({ metadata }) => metadata.name);
  if (names.length > 0) return `the volumes of storage class ${names.join(', ')}`;
  const volumes = await kube.list(persistentVolumes, { limit: mostVolumes });
  const volume = volumes.items.find(
    (one) =>
      refsOf(one).some((ref) => isSame(ref, secret)) &&
      !naming.some(({ metadata }) => metadata.name === one.spec.storageClassName),
  );
  return volume === undefined ? undefined : `volume ${volume.metadata.name}`;
};

export const keepEncryptionKey = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { operation, name = '', namespace = '' } = request;
  const fields = operation === 'DELETE' ? [] : changedFields(request);
  if (operation !== 'DELETE' && fields.length === 0) return allowed;
  const user = await findUser({ name, namespace }, kube);
  if (user === undefined) return allowed;
  const message = `Secret ${namespace}/${name} encrypts ${user}: delete it first`;
  const faults = fields.map((field) => ({ field: `data[${field}]`, message: `must stay as it is: ${message}` }));
  return refused('Forbidden', faults, faults.length === 0 ? message : undefined);
};
