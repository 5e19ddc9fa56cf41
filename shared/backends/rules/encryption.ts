// How a storage class says that its volumes are encrypted, and with which Secret: Longhorn's parameters, which are CSI's. Pure.

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
