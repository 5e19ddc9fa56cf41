// Parameters of the storage class that volumes made from an image have: decided once, from the class it is modelled on. Pure.
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

/** What may differ from the defaults. Whatever else a class says is not of a disk made from an image. */
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

/** Names the backing image a class was made for. */
export const backingImageOf = ({ parameters }: StorageClass): string | undefined => parameters?.['backingImage'];

/** A class of another driver says nothing to Longhorn. */
export const isTemplate = (storageClass: StorageClass | undefined): storageClass is StorageClass =>
  storageClass?.provisioner === longhornDriver && backingImageOf(storageClass) === undefined;

export const classParameters = (asked: Parameters | undefined, template: StorageClass | undefined): Parameters => ({
  ...defaults,
  ...permitted(isTemplate(template) ? (template.parameters ?? {}) : (asked ?? {})),
});

/** What was decided at admission, which may have been passed by: decided now where it was, and nothing else passes. */
export const parametersOf = ({ storage }: Image, template: StorageClass | undefined): Parameters =>
  storage.classParameters === undefined
    ? classParameters(undefined, template)
    : permitted(storage.classParameters, known);

/** Why the class of an image is not made: `undefined`, or it would read a Secret for somebody who may not. */
export const secretProblem = (
  { ref, grants }: Pick<Image, 'ref' | 'grants'>,
  parameters: Parameters,
): string | undefined =>
  foreignSecretProblem(parameters, { namespace: ref.namespace, mayUse: mayUseOf(ref.namespace, grants) });

/** Copies Longhorn keeps at least; `undefined` when the parameter is no number. */
export const copiesIn = (parameters: Parameters): number | undefined => {
  const count = Number(parameters['numberOfReplicas']);
  return Number.isInteger(count) && count > 0 ? count : undefined;
};

/** The Secret that encrypts; `undefined` where none is named. */
export const secretOf = (parameters: Parameters | undefined): SecretName | undefined =>
  secretAt(parameters, 'node-publish');
