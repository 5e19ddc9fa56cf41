// What a Harvester image is made from that its author must be allowed to use: C10 and C22, also within a namespace, as the original asks.
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import type { SourcesOf } from '#shared/resources/access-rule.ts';

export const harvesterImageSources: SourcesOf<HarvesterImage> = ({ spec }) => {
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
