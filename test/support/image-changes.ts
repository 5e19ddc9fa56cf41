// Changes of images that the rules of their CRDs reject or accept: checked with the embedded evaluator and a real API server.
import { type Draft, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';

const md5 = `md5:${'a'.repeat(32)}`;
const objectStore = { bucketName: 'b', objectName: 'o' };

/** Images as they were created. */
export const createdImages = {
  harvester: aHarvesterImage({ checksum: md5 }, { name: 'fixed' }),
  classed: aHarvesterImage({ targetStorageClassName: 'a' }, { name: 'classed' }),
  hyperCloud: aHyperCloudImage({ checksum: md5 }, { name: 'fixed' }),
} as const satisfies Record<string, Draft>;
type Created = keyof typeof createdImages;

/** The change, a merge patch of its spec, and the field of the fault. */
export const refusedChanges: readonly (readonly [what: string, of: Created, patch: object, field: string])[] = [
  ['sourceType (harvester/fixed-source-type)', 'harvester', { sourceType: 'upload' }, 'spec.sourceType'],
  ['pvcName (harvester/fixed-claim)', 'harvester', { pvcName: 'x' }, 'spec.pvcName'],
  ['pvcNamespace (harvester/fixed-claim)', 'harvester', { pvcNamespace: 'x' }, 'spec.pvcNamespace'],
  ['url (harvester/fixed-url)', 'harvester', { url: 'https://a/b' }, 'spec.url'],
  ['url removed (harvester/fixed-url)', 'harvester', { url: null }, 'spec.url'],
  ['displayName (harvester/fixed-display-name)', 'harvester', { displayName: 'x' }, 'spec.displayName'],
  ['backend', 'harvester', { backend: 'cdi' }, 'spec.backend'],
  ['checksum', 'harvester', { checksum: 'x' }, 'spec.checksum'],
  ['checksum removed', 'harvester', { checksum: null }, 'spec.checksum'],
  [
    'the class once it is set (harvester/fixed-class)',
    'classed',
    { targetStorageClassName: 'b' },
    'spec.targetStorageClassName',
  ],
  [
    'the class removed (harvester/fixed-class)',
    'classed',
    { targetStorageClassName: null },
    'spec.targetStorageClassName',
  ],
  ['checksum added', 'classed', { checksum: md5 }, 'spec.checksum'],
  ['source', 'hyperCloud', { source: { http: 'https://a/b' } }, 'spec.source'],
  ['a second source', 'hyperCloud', { source: { objectStore } }, 'spec.source'],
  ['checksum of HyperCloud', 'hyperCloud', { checksum: null }, 'spec.checksum'],
  ['pvc added', 'hyperCloud', { pvc: {} }, 'spec.pvc'],
  ['storage class added', 'hyperCloud', { storageClassName: 'a' }, 'spec.storageClassName'],
  ['snapshot class added', 'hyperCloud', { snapshotClassName: 'a' }, 'spec.snapshotClassName'],
];

export const acceptedChanges: readonly (readonly [what: string, of: Created, patch: object])[] = [
  ['a description', 'harvester', { description: 'x' }],
  ['retries', 'harvester', { retry: 1 }],
  ['a class that was left out', 'harvester', { targetStorageClassName: 'a' }],
  ['nothing', 'hyperCloud', {}],
];

/** Images that cannot be created, independently of the webhooks. */
export const refusedImages: readonly (readonly [what: string, image: Draft, field: string])[] = [
  ['no source', aHyperCloudImage({ source: {} }), 'spec.source'],
  ['two sources', aHyperCloudImage({ source: { http: 'https://a/b', objectStore } }), 'spec.source'],
  ['an empty display name (harvester/display-name-given)', aHarvesterImage({ displayName: '' }), 'spec.displayName'],
  ['too many retries', aHarvesterImage({ retry: 11 }), 'spec.retry'],
];
