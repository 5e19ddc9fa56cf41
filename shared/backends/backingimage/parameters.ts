// Parameters of the storage class for volumes of an image: decided once, from a template class. Pure.
import { mayUseOf } from '#shared/access/grant.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { longhornDriver } from '#shared/api/foreign/longhorn.ts';
import {
  type SecretName,
  foreignSecretProblem,
  secretAt,
  secretKey,
  secretStages,
} from '#shared/backends/rules/encryption.ts';
import type { Image } from '#shared/backends/image.ts';

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

/** The backing image that a class belongs to. */
export const backingImageOf = ({ parameters }: StorageClass): string | undefined => parameters?.['backingImage'];

/** A class of another driver has no valid parameters for Longhorn. */
export const isTemplate = (storageClass: StorageClass | undefined): storageClass is StorageClass =>
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
