// Claims that ask for it are completed from the profile of their class, with the sizes and words of CDI's own webhook.
import { expect, it } from 'vitest';
import { createApp } from './app.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, type Loose, ask, clusterOf, patched } from '#test/support/admission.ts';

const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const isVirtDefault = { 'storageclass.kubevirt.io/is-default-virt-class': 'true' };
const aClass = (name: string, provisioner: string, annotations: object = {}): Draft => {
  const object = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations },
    provisioner,
  };
  return object;
};
const inCdi = (kind: string, name: string, rest: object): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind,
  metadata: { name },
  ...rest,
});
const kube = clusterOf(
  aClass('usual', 'nfs.csi.k8s.io', isDefault),
  aClass('disks', 'topolvm.io', isVirtDefault),
  aClass('files', 'nfs.csi.k8s.io'),
  aClass('greedy', 'nfs.csi.k8s.io'),
  aClass('large', 'vpc.file.csi.ibm.io'),
  aClass('new', 'new.example'),
  {
    ...inCdi('StorageProfile', 'large', {}),
    metadata: { name: 'large', annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '10Gi' } },
  },
  inCdi('CDIConfig', 'config', {
    spec: {},
    status: { filesystemOverhead: { global: '0.06', storageClass: { greedy: '0.2' } } },
  }),
);
const app = createApp({ kube, log: silentLogger });
const labels = { 'cdi.kubevirt.io/applyStorageProfile': 'true' };
const aClaim = (spec: Loose, metadata: Loose = {}, size = '64Mi'): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: 'default', name: 'disk', labels, ...metadata },
  spec: { ...(size === '' ? {} : { resources: { requests: { storage: size } } }), ...spec },
});
const archive = { annotations: { 'cdi.kubevirt.io/storage.contentType': 'archive' } };
const answerTo = (object: Draft, by = app) => ask(by, '/mutate', { object });
const [rwo, rwx] = [['ReadWriteOnce'], ['ReadWriteMany']];
const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' };

it.each<[what: string, claim: Draft, spec: readonly [className: string, mode: string, access: string[], size: string]]>(
  [
    ['the class of disks', aClaim({}), ['disks', 'Block', rwo, '64Mi']],
    ['another mode of it', aClaim({ volumeMode: 'Filesystem' }), ['disks', 'Filesystem', rwo, '71135396']],
    ['the usual class for files', aClaim({}, archive), ['usual', 'Filesystem', rwx, '71135396']],
    ['the class that it names', aClaim({ storageClassName: 'files' }), ['files', 'Filesystem', rwx, '71135396']],
    [
      'what the class prefers, when it is requested by name',
      aClaim({ storageClassName: 'files', volumeMode: 'FromStorageProfile' }),
      ['files', 'Filesystem', rwx, '71135396'],
    ],
    [
      'its own access modes',
      aClaim({ storageClassName: 'files', accessModes: rwo, volumeMode: 'FromStorageProfile' }),
      ['files', 'Filesystem', rwo, '71135396'],
    ],
    ['the overhead of its class', aClaim({ storageClassName: 'greedy' }), ['greedy', 'Filesystem', rwx, '80530637']],
    ['the least size of its class', aClaim({ storageClassName: 'large' }), ['large', 'Filesystem', rwx, '10Gi']],
    [
      'a class that nothing is known of, with its own modes',
      aClaim({ storageClassName: 'new', accessModes: rwo }),
      ['new', 'Filesystem', rwo, '71135396'],
    ],
    [
      'no larger size when it restores a snapshot',
      aClaim({ storageClassName: 'files', dataSource: snapshot }),
      ['files', 'Filesystem', rwx, '64Mi'],
    ],
  ],
)('a claim gets %s', async (_what, claim, [storageClassName, volumeMode, accessModes, storage]) => {
  const { spec } = patched(claim, await answerTo(claim));
  expect(spec).toEqual({
    ...(claim.spec?.['dataSource'] === undefined ? {} : { dataSource: snapshot }),
    storageClassName,
    volumeMode,
    accessModes,
    resources: { requests: { storage } },
  });
});

it.each<[what: string, claim: Draft, says: string]>([
  [
    'a block device for files',
    aClaim({ volumeMode: 'Block' }, archive),
    'spec.volumeMode: ContentType Archive cannot have block volumeMode',
  ],
  ['no size', aClaim({}, {}, ''), 'PVC Spec is not valid - missing storage size'],
  ['less than a disk', aClaim({}, {}, '1000k'), 'PVC Spec is not valid - storage size should be at least 1MiB'],
  [
    'no modes in a class that offers none',
    aClaim({ storageClassName: 'new' }),
    'cannot get access mode from StorageProfile new',
  ],
  [
    'no modes in a class that is not there',
    aClaim({ storageClassName: 'gone' }),
    'PVC spec is missing accessMode and no storageClass to choose profile',
  ],
])('rejects a claim that requests %s', async (_what, claim, says) => {
  const { allowed, status } = await answerTo(claim);
  expect([allowed, status?.message]).toEqual([false, expect.stringContaining(says)]);
});

it.each<[what: string, claim: Draft, by?: ReturnType<typeof createApp>]>([
  ['has no such label', aClaim({}, { labels: {} })],
  ['has the label with the value false', aClaim({}, { labels: { 'cdi.kubevirt.io/applyStorageProfile': 'false' } })],
  ['is for a CDI that is installed', aClaim({}), createApp({ kube, log: silentLogger, cdi: async () => 'use' })],
])('leaves a claim unchanged that %s', async (_what, claim, by) => {
  const answer = await answerTo(claim, by);
  expect([answer.allowed, answer.patch]).toEqual([true, undefined]);
});
