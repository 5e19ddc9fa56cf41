// Secrets that must exist before data can be transferred. Only their existence is checked, never their content.
import { secrets } from '#shared/api/foreign/core.ts';
import type { BackupDeps } from './settings.ts';
import type { ImageMetadata } from '#shared/backup/metadata.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { secretAt, secretStages } from '#shared/backends/rules/encryption.ts';

export interface MissingSecret {
  readonly namespace: string;
  readonly name: string;
  /** Required content, for messages. */
  readonly holds: string;
}

export const describeMissing = ({ namespace, name, holds }: MissingSecret): string =>
  `Secret ${name} is missing in namespace ${namespace}: create it with ${holds}`;

type Kube = Pick<BackupDeps, 'kube'>;

const ifMissing = async ({ kube }: Kube, secret: MissingSecret): Promise<MissingSecret | undefined> => {
  const { namespace, name } = secret;
  return (await kube.get(secrets, { namespace, name })) === undefined ? secret : undefined;
};

/** The credentials that Jobs of a namespace need for the target. */
export const missingAccess = async (
  deps: Pick<BackupDeps, 'kube' | 'secretName'>,
  target: BackupTarget,
  namespace: string,
): Promise<MissingSecret | undefined> =>
  target.type === 'nfs' || target.secret === undefined
    ? undefined
    : ifMissing(deps, { namespace, name: deps.secretName, holds: `the credentials of ${target.name}` });

/** Keys of encrypted volumes, from the parameters of the image's own storage class; templated names are unknown. */
export const secretsOfClass = ({ storageClass, spec }: ImageMetadata): readonly MissingSecret[] => {
  const asked = spec['storageClassParameters'] as Readonly<Record<string, string>> | undefined;
  const parameters = storageClass?.parameters ?? asked ?? {};
  return secretStages.flatMap((stage) => {
    const secret = secretAt(parameters, stage);
    const isKnown = secret !== undefined && !`${secret.name}${secret.namespace}`.includes('${');
    return isKnown ? [{ ...secret, holds: 'the key that the volumes of the image are encrypted with' }] : [];
  });
};

export const missingOfClass = async (deps: Kube, metadata: ImageMetadata): Promise<MissingSecret | undefined> => {
  for (const secret of secretsOfClass(metadata)) {
    const missing = await ifMissing(deps, secret);
    if (missing !== undefined) return missing;
  }
  return undefined;
};
