// The key of encrypted volumes must not be deleted or changed while a class with it, or a volume, exists: without it their data is lost
// (protected/encryption-key-in-use). A class that was created for an image refers only to Secrets that its author may read.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import {
  type PersistentVolume,
  type StorageClass,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { ownerOf } from '#shared/api/owner.ts';
import {
  type SecretName,
  foreignSecretsIn,
  isEncrypted,
  secretAt,
  secretStages,
} from '#shared/backends/rules/encryption.ts';
import { isGranted } from '#shared/access/grant.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

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
