// How a storage class says that its volumes are encrypted, and which Secrets it names: Longhorn's parameters, which are CSI's. Pure.
import { type MayUse, type UsedSource, anyName } from '#shared/access/grant.ts';

type Parameters = Readonly<Record<string, string>>;

export const secretStages = ['provisioner', 'node-stage', 'node-publish', 'node-expand'] as const;
export type SecretStage = (typeof secretStages)[number];

export const secretKey = (stage: SecretStage, part: 'name' | 'namespace'): string =>
  `csi.storage.k8s.io/${stage}-secret-${part}`;

export const isEncrypted = (parameters: Parameters | undefined): boolean => parameters?.['encrypted'] === 'true';

export interface SecretName {
  readonly name: string;
  readonly namespace: string;
}

/** The Secret of a stage; `undefined` where it is not named whole. */
export const secretAt = (parameters: Parameters | undefined, stage: SecretStage): SecretName | undefined => {
  const [name, namespace] = [parameters?.[secretKey(stage, 'name')], parameters?.[secretKey(stage, 'namespace')]];
  return name === undefined || namespace === undefined ? undefined : { name, namespace };
};

/** `csi.storage.k8s.io/<stage>-secret-name`, and the spelling of older drivers, as `adminSecretName`. */
const nameKey = /^(.*secret-?)(name)$/i;
const partnerOf = (key: string): string =>
  key.replace(nameKey, (_all, stem: string, name: string) => `${stem}${name === 'Name' ? 'Namespace' : 'namespace'}`);

/** What the storage puts in for the namespace of each claim: its author's own. */
const ownNamespace = '${pvc.namespace}';

export interface NamedSecret extends UsedSource {
  /** The parameter that names it. */
  readonly key: string;
}

/**
 * Secrets of other namespaces that the storage would read for whoever wrote these parameters. A name that is made for each claim stands for
 * every Secret there; a namespace that is put together from parts could become any, and is asked for as it is written: nobody but who may
 * read all Secrets has a right to it.
 */
export const foreignSecretsIn = (parameters: Parameters | undefined, namespace: string): readonly NamedSecret[] =>
  Object.entries(parameters ?? {}).flatMap(([key, name]): readonly NamedSecret[] => {
    const where = nameKey.test(key) ? (parameters?.[partnerOf(key)] ?? '') : '';
    if (name === '' || where === '' || where === namespace || where === ownNamespace) return [];
    return [{ use: 'read-secret', namespace: where, name: name.includes('$') ? anyName : name, key }];
  });

/** Why parameters are not to be used for their author; `undefined`: nothing is in the way. */
export const foreignSecretProblem = (
  parameters: Parameters | undefined,
  { namespace, mayUse }: { readonly namespace: string | undefined; readonly mayUse: MayUse },
): string | undefined => {
  const denied = foreignSecretsIn(parameters, namespace ?? '').find((secret) => !mayUse(secret));
  return denied === undefined
    ? undefined
    : `the parameter ${denied.key} names a Secret of namespace ${denied.namespace}, which the author of this image may not read: use one of its own namespace, or ask for the right to get it, and create the image again`;
};
