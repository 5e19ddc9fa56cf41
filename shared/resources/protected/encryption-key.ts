// The Secret that a class encrypts its volumes with stays as long as the class does: without it their bytes are lost (P22).
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { storageClasses } from '#shared/api/foreign/core.ts';
import { isEncrypted, secretAt, secretStages } from '#shared/backends/rules/encryption.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

/** The field of a Secret that holds Longhorn's key. Told by it, no other Secret is ever sent to us. */
export const encryptionKeyField = 'CRYPTO_KEY_VALUE';

/** More classes than anybody has. */
const pageSize = 500;

export const keepEncryptionKey = async (
  { name, namespace }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  const { items } = await kube.list(storageClasses, { limit: pageSize });
  const users = items.filter(
    ({ parameters }) =>
      isEncrypted(parameters) &&
      secretStages.some((stage) => {
        const secret = secretAt(parameters, stage);
        return secret?.name === name && secret?.namespace === namespace;
      }),
  );
  if (users.length === 0) return allowed;
  const names = users.map(({ metadata }) => metadata.name).join(', ');
  return refused(
    'Forbidden',
    [],
    `Secret ${namespace}/${name} encrypts the volumes of storage class ${names}: delete that first`,
  );
};
