// What a Harvester image is made from that its author must be allowed to use (harvester/source-image-allowed, harvester/claim-allowed), also within a
// namespace, as the original asks.
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import { foreignSecretsIn } from '#shared/backends/rules/encryption.ts';
import type { AskedSource, SourcesOf } from '#shared/resources/access-rule.ts';

export const harvesterImageSources: SourcesOf<HarvesterImage> = (object) => [...originOf(object), ...secretsOf(object)];

/** What the storage would read for every volume of the image's class, whoever is allowed to read it. Each once. */
const secretsOf = ({ metadata, spec }: HarvesterImage): readonly AskedSource[] => {
  const named = foreignSecretsIn(spec.storageClassParameters, metadata.namespace ?? '').map(({ key, ...secret }) => ({
    ...secret,
    field: `spec.storageClassParameters[${key}]`,
  }));
  return named.filter(
    ({ namespace, name }, at) => named.findIndex((one) => one.namespace === namespace && one.name === name) === at,
  );
};

const originOf = ({ spec }: HarvesterImage): readonly AskedSource[] => {
  const { sourceType, pvcName = '', pvcNamespace = '', securityParameters: encryption } = spec;
  if (sourceType === 'export-from-volume' && pvcName !== '' && pvcNamespace !== '') {
    return [{ use: 'export-claim', namespace: pvcNamespace, name: pvcName, field: 'spec.pvcName' }];
  }
  if (sourceType === 'clone' && encryption !== undefined) {
    const { sourceImageNamespace: namespace, sourceImageName: name } = encryption;
    return [{ use: 'use-image', namespace, name, field: 'spec.securityParameters.sourceImageName' }];
  }
  return [];
};
