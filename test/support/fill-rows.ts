// Defaults set in requests, and fields that stay unchanged: sent to the functions, and to API servers.
import { type Draft, type Loose, aHarvesterImage } from '#test/support/admission.ts';
import { storageClass } from '#test/support/row-objects.ts';
import type { FillRow } from '#test/support/rule-row.ts';

const classed = (className: string) => ({
  metadata: { annotations: { 'harvesterhci.io/storageClassName': className } },
  spec: { targetStorageClassName: className },
});

const image = (spec: Loose = {}, metadata: Loose = {}): Draft => aHarvesterImage(spec, { uid: undefined, ...metadata });
const dataVolume = (storage: Loose): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default' },
  spec: { source: { blank: {} }, storage: { resources: { requests: { storage: '1Gi' } }, ...storage } },
});
const longhorn = storageClass('fast', {}, { numberOfReplicas: '2', fsType: 'ext4' });

export const fillRows: readonly FillRow[] = [
  {
    id: 'defaults/backend-and-retry',
    given: [],
    cases: [
      {
        what: 'what is left out',
        object: image({ backend: undefined, retry: undefined }),
        becomes: { spec: { backend: 'backingimage', retry: 3 } },
      },
      { what: 'what is written', object: image({ retry: 0 }), becomes: { spec: { backend: 'csi', retry: 0 } } },
    ],
  },
  {
    id: 'defaults/display-name-label',
    given: [],
    cases: [
      {
        what: 'a name that is a label',
        object: image({}, { labels: { 'harvesterhci.io/imageDisplayName': 'forged', mine: 'x' } }),
        becomes: { metadata: { labels: { 'harvesterhci.io/imageDisplayName': 'leap', mine: 'x' } } },
      },
      {
        what: 'one that is not',
        object: image({ displayName: 'Debian 12 (bookworm)' }),
        becomes: {
          metadata: {
            labels: {
              'harvesterhci.io/imageDisplayName': 'sha256-a1cd6a6fc47cf333614fba284f440e2d2ed96275fe880a72',
            },
          },
        },
      },
    ],
  },
  {
    id: 'defaults/class-parameters',
    given: [longhorn],
    cases: [
      {
        what: 'the parameters of a class of Longhorn, those that are known',
        object: image({ backend: 'backingimage', targetStorageClassName: 'fast' }),
        becomes: {
          spec: { storageClassParameters: { numberOfReplicas: '2', staleReplicaTimeout: '30', migratable: 'true' } },
        },
      },
      {
        what: 'what is asked for where no class says otherwise',
        object: image({
          backend: 'backingimage',
          storageClassParameters: { numberOfReplicas: '1', migratable: 'false' },
        }),
        becomes: {
          spec: { storageClassParameters: { numberOfReplicas: '1', staleReplicaTimeout: '30', migratable: 'true' } },
        },
      },
    ],
  },
  {
    id: 'defaults/one-storage-class',
    given: [longhorn],
    cases: [
      {
        what: 'the field, from the annotation',
        object: image({}, { annotations: { 'harvesterhci.io/storageClassName': 'fast' } }),
        becomes: classed('fast'),
      },
      {
        what: 'the annotation, from the field',
        object: image({ targetStorageClassName: 'fast' }),
        becomes: classed('fast'),
      },
    ],
  },
  {
    id: 'data-volume/storage',
    given: [longhorn],
    cases: [
      {
        what: 'the modes, from the class',
        object: dataVolume({ storageClassName: 'fast' }),
        becomes: { spec: { storage: { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] } } },
      },
      {
        what: 'modes that are written',
        object: dataVolume({ storageClassName: 'fast', volumeMode: 'Block', accessModes: ['ReadWriteMany'] }),
        becomes: { spec: { storage: { volumeMode: 'Block', accessModes: ['ReadWriteMany'] } } },
      },
    ],
  },
];
