// Requests that are accepted although they resemble those that the rules reject: sent to the functions, and to API servers.
import { type Draft, type Loose, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';
import { advised, exemptKeyRows, goodAdvice } from '#test/support/class-rows.ts';
import { exemptPolicyRows } from '#test/support/policy-rows.ts';
import {
  claim,
  disk,
  exported,
  exporting,
  image,
  imageClass,
  machine,
  ofMachine,
  ofTemplate,
  owned,
  storageClass,
  templateVersion,
  uid,
  unfinished,
  withoutMark,
} from '#test/support/row-objects.ts';
import { type ExemptRow, exempt } from '#test/support/rule-row.ts';

const elsewhere: Draft = { ...image, metadata: { ...image.metadata, namespace: 'elsewhere' } };
const marks = owned('volume')['annotations'] as Loose;
const gone = aHyperCloudImage({}, { uid: 'uid-7' });
const account: Draft = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'quiet', namespace: 'default' },
};
const pod: Draft = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'writer', namespace: 'default' },
  spec: {
    serviceAccountName: 'quiet',
    containers: [{ name: 'a', image: 'a' }],
    volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }],
  },
  status: { phase: 'Running' },
};
const isOver = (type: string): Draft => ({ ...exporting, status: { conditions: [{ type, status: 'True' }] } });

export const exemptRows: readonly ExemptRow[] = [
  ...exemptKeyRows,
  ...exemptPolicyRows,
  exempt('protected/golden-volume-in-use', 'a golden claim whose image is gone', [], { oldObject: claim() }),
  exempt('protected/golden-volume-in-use', 'a golden claim of an image whose name another one has taken', [gone], {
    oldObject: claim(),
  }),
  exempt('protected/golden-volume-in-use', 'a claim that only says it holds an image', [image], {
    oldObject: claim({ ...owned('volume'), name: 'forged' }),
  }),
  exempt('protected/golden-volume-in-use', 'a claim with the marks of an image of another namespace', [elsewhere], {
    oldObject: claim(owned('volume', { annotations: { ...marks, 'bullion.dev/owner-namespace': 'elsewhere' } })),
  }),
  exempt('protected/golden-volume-in-use', 'a class that only says it is of an image', [image], {
    oldObject: { ...imageClass, metadata: { ...imageClass.metadata, name: 'forged' } },
  }),
  exempt('protected/marks-are-ours', 'marks of a claim whose image is gone', [], {
    oldObject: claim(),
    object: withoutMark,
  }),
  exempt('protected/marks-are-ours', 'the end of marks that are not true', [image], {
    oldObject: claim({ ...owned('volume'), name: 'forged' }),
    object: claim({ name: 'forged' }),
  }),
  exempt('protected/exported-claim', 'a claim that only says it is being exported', [exporting], {
    oldObject: claim({ name: 'other', ...exported }),
  }),
  exempt('protected/image-of-template', 'a template version that was made anew', [templateVersion('t-2')], {
    oldObject: ofTemplate,
  }),
  exempt('protected/class-in-use', 'a class whose images say another one', [aHyperCloudImage({}, image.metadata)], {
    oldObject: storageClass('fast'),
  }),
  exempt(
    'protected/class-in-use',
    'a class whose last image is on its way out',
    [{ ...image, metadata: { ...image.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    { oldObject: storageClass('fast') },
  ),
  exempt('protected/golden-volume-unmounted', 'a machine that was imported whole', [image, claim()], {
    object: machine('ubuntu-image-pvc', { labels: { 'migration.harvesterhci.io/imported': 'true' } }),
  }),
  exempt('protected/machine-image-allowed', 'a machine with notes that are no JSON', [], {
    object: machine('x', { annotations: { 'harvesterhci.io/volumeClaimTemplates': '{' } }),
  }),
  exempt('protected/image-class-allowed', 'a claim by a function of ours', [imageClass, image], {
    object: claim({}, { storageClassName: 'lh-uid-1' }),
    username: 'system:serviceaccount:bullion-system:initialize',
  }),
  exempt('harvester/any-display-name', 'a display name that is no label value', [], {
    object: aHarvesterImage({ displayName: `Debian 12 (bookworm), 日本 ${'x'.repeat(70)}` }, { uid: undefined }),
  }),
  {
    ids: ['harvester/export-in-use'],
    what: 'an export of a claim that a running pod mounts',
    given: [account, claim({ name: 'root' }), pod],
    rights: ['get persistentvolumeclaims default/root'],
    asked: {
      object: aHarvesterImage(
        { backend: 'cdi', sourceType: 'export-from-volume', url: undefined, pvcName: 'root', pvcNamespace: 'default' },
        { uid: undefined },
      ),
    },
  },
  exempt(
    'harvester/display-name-asked-once',
    'an edit of an image whose display name another one has',
    [aHarvesterImage({}, { name: 'twin' })],
    {
      oldObject: aHarvesterImage(),
      object: aHarvesterImage({ description: 'x' }),
    },
  ),
  exempt('harvester/source-asked-once', 'an edit of an image that could not be created today', [], {
    oldObject: aHarvesterImage({ url: 'nowhere' }),
    object: aHarvesterImage({ url: 'nowhere', description: 'x' }),
  }),
  exempt(
    'harvester/cdi-image-deleted protected/image-of-template',
    'an image that has no class yet, under a template version',
    [templateVersion('t-1')],
    {
      oldObject: unfinished,
    },
  ),
  exempt(
    'harvester/cdi-image-deleted',
    'an image that disks were copied from',
    [claim({ name: 'root' }, { storageClassName: 'fast' })],
    {
      oldObject: { ...aHarvesterImage({ backend: 'cdi' }), status: { storageClassName: 'fast' } },
    },
  ),
  exempt('protected/golden-claim-marked', 'a claim that only has the name of an image', [image], {
    oldObject: claim({ name: 'ubuntu' }),
  }),
  exempt(
    'protected/class-of-others protected/claim-class-exists',
    'a claim of a class of others that is not there',
    [],
    {
      object: claim({}, { storageClassName: 'longhorn-static' }),
    },
  ),
  exempt('protected/class-of-machine-state', 'a claim for the state of a machine', [], {
    object: claim({}, { storageClassName: 'vmstate-persistence' }),
  }),
  exempt('protected/claim-class-exists', 'a claim that is bound by hand', [], {
    object: claim({}, { storageClassName: '' }),
  }),
  ...['Imported', 'RetryLimitExceeded'].map((type) =>
    exempt('protected/exported-claim', `a claim whose export has come to its end (${type})`, [isOver(type)], {
      oldObject: claim({ name: 'root', ...exported }),
    }),
  ),
  exempt('protected/exported-claim', 'a claim whose image is gone', [], {
    oldObject: claim({ name: 'root', ...exported }),
  }),
  exempt('protected/machine-disk', 'a claim of a machine that was made anew', [machine('x', { uid: 'vm-2' })], {
    oldObject: claim({ name: 'root', ...ofMachine }),
  }),
  exempt(
    'protected/machine-disk',
    'a claim of a machine on its way out',
    [machine('root', { uid, deletionTimestamp: '2026-01-01T00:00:00Z' })],
    { oldObject: claim({ name: 'root', ...ofMachine }) },
  ),
  exempt('protected/machine-disk', 'a claim with notes that are no JSON', [machine('x')], {
    oldObject: claim({ name: 'root', annotations: { 'harvesterhci.io/owned-by': '{' } }),
  }),
  exempt(
    'protected/machine-disk',
    'a data volume that was taken out of the machine that owns it',
    [machine('x', { uid })],
    {
      oldObject: { ...disk('root'), metadata: { name: 'root', namespace: 'default', ...ofMachine } },
    },
  ),
  exempt('class/one-secret', 'a class that was there before', [], {
    oldObject: storageClass('fast', {}, { encrypted: 'true' }),
    object: storageClass('fast', { labels: { a: 'b' } }, { encrypted: 'true' }),
  }),
  exempt('class/known-driver', 'a class of an unknown driver without advice', [], {
    object: { ...storageClass('fast'), provisioner: 'unknown.example' },
  }),
  exempt('class/advice-followed', 'advice on a class of another driver', [], {
    object: { ...advised(goodAdvice, { dataEngine: 'v1' }).object, provisioner: 'other.example' },
  }),
  exempt('class/movable-disks', 'a class that was there before', [], {
    oldObject: storageClass('fast', {}, { dataLocality: 'strict-local' }),
    object: storageClass('fast', { labels: { a: 'b' } }, { dataLocality: 'strict-local' }),
  }),
  exempt('hypercloud/volume-mode', 'an image in a file system', [], {
    object: aHyperCloudImage({ pvc: { volumeMode: 'Filesystem', resources: { requests: { storage: '3Gi' } } } }),
  }),
  exempt('pvc/image-ready', 'a volume of an image that is not there yet', [], {
    object: {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachinePvc',
      metadata: { name: 'disk', namespace: 'default' },
      spec: { virtualMachineImageName: 'later' },
    },
  }),
];
