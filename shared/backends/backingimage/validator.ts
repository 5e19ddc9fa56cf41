// Longhorn's rules for an image in addition to those of its kind. Called by admission.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { isTrue } from '#shared/api/conditions.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { BackendMutator, BackendValidator, Image, ImageCloneSource } from '#shared/backends/backend.ts';
import { backingImageOf, classParameters, copiesIn } from './manifests.ts';
import { isEncrypted } from '#shared/backends/rules/encryption.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Fault } from '#shared/runtime/errors.ts';

const fault = (field: string, message: string): Fault => ({ field, message });

const checksumFaults = ({ checksum }: Image): readonly Fault[] =>
  checksum === undefined || checksum.algorithm === 'sha512'
    ? []
    : [fault('spec.checksum', `is of ${checksum.algorithm}, and Longhorn checks sha512 only: write that of the file`)];

const replicaFaults = ({ storage }: Image): readonly Fault[] => {
  const { classParameters: parameters } = storage;
  return parameters === undefined || copiesIn(parameters) !== undefined
    ? []
    : [fault('spec.storageClassParameters.numberOfReplicas', 'must be a number above 0')];
};

/** The class of another image cannot be a template. */
const templateFaults = async ({ storage, source }: Image, kube: KubeClient): Promise<readonly Fault[]> => {
  const { className } = storage;
  const field = 'spec.targetStorageClassName';
  const isEncrypting = source?.type === 'clone' && source.operation === 'encrypt';
  if (className === undefined)
    return isEncrypting ? [fault(field, 'is required to encrypt: name a class with a Secret')] : [];
  const storageClass = await kube.get(storageClasses, { name: className });
  if (storageClass === undefined) return [fault(field, `storage class "${className}" does not exist`)];
  const owner = backingImageOf(storageClass);
  return [
    ...(owner === undefined
      ? []
      : [fault(field, `storage class "${className}" belongs to the backing image ${owner}`)]),
    ...(isEncrypting && !isEncrypted(storageClass.parameters)
      ? [fault(field, `storage class "${className}" does not encrypt: its parameter "encrypted" must be "true"`)]
      : []),
  ];
};

const sourceField = 'spec.securityParameters.sourceImageName';

const cloneFaults = async (
  { namespace, imageName, operation }: ImageCloneSource,
  kube: KubeClient,
): Promise<readonly Fault[]> => {
  const what = `image ${namespace}/${imageName}`;
  const source = await kube.get(harvesterImageKind.type, { namespace, name: imageName });
  if (source === undefined) return [fault(sourceField, `${what} does not exist`)];
  const was = source.spec.securityParameters?.cryptoOperation;
  const faults: Fault[] = [];
  if (operation === 'encrypt' && was === 'encrypt') faults.push(fault(sourceField, `${what} is encrypted already`));
  if (operation === 'decrypt' && was !== 'encrypt') faults.push(fault(sourceField, `${what} is not encrypted`));
  if (!isTrue(source.status?.conditions, 'Imported')) faults.push(fault(sourceField, `${what} is not ready`));
  return faults;
};

/** Rules for a clone and its class, and rules of Longhorn itself. */
const create = async (image: Image, kube: KubeClient): Promise<readonly Fault[]> => [
  ...checksumFaults(image),
  ...replicaFaults(image),
  ...(await templateFaults(image, kube)),
  ...(image.source?.type === 'clone' ? await cloneFaults(image.source, kube) : []),
];

/** Volumes depend on these fields (harvester/fixed-parameters). */
const update = (before: Image, after: Image): readonly Fault[] => {
  const [was, is] = [before, after].map(({ storage }) => JSON.stringify(sorted(storage.classParameters)));
  return was === is ? [] : [fault('spec.storageClassParameters', 'cannot be changed: create a new image instead')];
};

const sorted = (parameters: Readonly<Record<string, string>> = {}): readonly (readonly [string, string])[] =>
  Object.entries(parameters).toSorted(([a], [b]) => a.localeCompare(b));

export const validator: BackendValidator = { create, update, delete: () => [] };

export const mutator: BackendMutator = { classParameters };
