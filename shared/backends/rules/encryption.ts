// The encryption parameters of a storage class and the Secrets they refer to: Longhorn's parameters, which are those of CSI. Pure.
import { type MayUse, type UsedSource, anyName } from '#shared/access/permissions.ts';

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

/** The Secret of a stage; `undefined` if its name or namespace is missing. */
export const secretAt = (parameters: Parameters | undefined, stage: SecretStage): SecretName | undefined => {
  const [name, namespace] = [parameters?.[secretKey(stage, 'name')], parameters?.[secretKey(stage, 'namespace')]];
  return name === undefined || namespace === undefined ? undefined : { name, namespace };
};

/** `csi.storage.k8s.io/<stage>-secret-name`, and the names in older drivers, such as `adminSecretName`. */
const nameKey = /^(.*secret-?)(name)$/i;
const partnerOf = (key: string): string =>
  key.replace(nameKey, (_all, stem: string, name: string) => `${stem}${name === 'Name' ? 'Namespace' : 'namespace'}`);

/** The storage replaces this by the namespace of each claim: the author's own. */
const ownNamespace = '${pvc.namespace}';

export interface NamedSecret extends UsedSource {
  /** The parameter that refers to it. */
  readonly key: string;
}

/**
 * Secrets of other namespaces that the storage would read for the author of these parameters. A name that is templated per claim counts as
 * every Secret of that namespace; a templated namespace could be any, so access is checked for the literal text: only users who may read all
 * Secrets pass.
 */
export const foreignSecretsIn = (parameters: Parameters | undefined, namespace: string): readonly NamedSecret[] =>
  Object.entries(parameters ?? {}).flatMap(([key, name]): readonly NamedSecret[] => {
    const where = nameKey.test(key) ? (parameters?.[partnerOf(key)] ?? '') : '';
    if (name === '' || where === '' || where === namespace || where === ownNamespace) return [];
    return [{ use: 'read-secret', namespace: where, name: name.includes('$') ? anyName : name, key }];
  });

/** Why parameters must not be used for their author; `undefined`: no problem. */
export const foreignSecretProblem = (
  parameters: Parameters | undefined,
  { namespace, mayUse }: { readonly namespace: string | undefined; readonly mayUse: MayUse },
): string | undefined => {
  const denied = foreignSecretsIn(parameters, namespace ?? '').find((secret) => !mayUse(secret));
  return denied === undefined
    ? undefined
    : `the parameter ${denied.key} names a Secret of namespace ${denied.namespace}, which the author of this image may not read: use one of its own namespace, or ask for the right to get it, and create the image again`;
};
