// The rules of volumes made from images: one row for each, rejected and accepted.
import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/validate/app.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, aHyperCloudImage, ask, clusterOf } from '#test/support/admission.ts';

const apiVersion = 'hypercloud.tmaxanc.com/v1alpha1';
const image: Draft = { ...aHyperCloudImage(), status: { virtualSize: 2 * 2 ** 30 } };
const app = createApp({ kube: clusterOf(image), log: silentLogger });

const aPvc = (pvc?: object, imageName = 'ubuntu'): Draft => ({
  apiVersion,
  kind: 'VirtualMachinePvc',
  metadata: { name: 'disk', namespace: 'default' },
  spec: { virtualMachineImageName: imageName, ...(pvc === undefined ? {} : { pvc }) },
});
const aVolume = (spec: object = {}, name = 'disk'): Draft => ({
  apiVersion,
  kind: 'VirtualMachineVolume',
  metadata: { name, namespace: 'default' },
  spec: { virtualMachineImage: { name: 'ubuntu' }, ...spec },
});
const sized = (storage: string) => ({ resources: { requests: { storage } } });

describe('volumes', () => {
  it.each<[rule: string, denied: Draft, fault: RegExp]>([
    ['a valid size', aPvc(sized('-1')), /spec\.pvc\.resources\.requests\.storage.*not a valid quantity/],
    ['enough space for the disk', aPvc(sized('1Gi')), /1073741824 bytes.*2147483648/],
    ['a writable claim', aPvc({ accessModes: ['ReadOnlyMany'] }), /spec\.pvc\.accessModes/],
    ['a volume of its own', aPvc({ volumeName: 'pv' }), /spec\.pvc\.volumeName/],
    ['no other source', aPvc({ dataSource: { kind: 'VolumeSnapshot', name: 'x' } }), /spec\.pvc\.dataSource/],
    ['a valid capacity', aVolume({ capacity: { storage: 'much' } }), /spec\.capacity\.storage.*not a valid quantity/],
    ['enough capacity for the disk', aVolume({ capacity: { storage: '1Gi' } }), /1073741824 bytes.*2147483648/],
    [
      'an image of its own namespace',
      aVolume({ virtualMachineImage: { name: 'ubuntu', namespace: 'other' } }),
      /spec\.virtualMachineImage\.namespace/,
    ],
    ['a name short enough for the claim', aVolume({}, 'n'.repeat(246)), /metadata\.name/],
    ['one of the two forms', aVolume({ virtualMachineImage: {} }), /spec\.virtualMachineImage\.name/],
  ])('must have %s', async (_rule, denied, fault) => {
    const { allowed, status } = await ask(app, '/validate', { object: denied });
    expect(allowed).toBe(false);
    expect(status?.message).toMatch(fault);
  });

  it.each<[what: string, object: Draft]>([
    ['no size', aPvc()],
    ['just the size of the image', aPvc(sized('2Gi'))],
    ['an image that does not exist yet', aPvc(sized('1Gi'), 'later')],
    ['an empty class name, as clients in Go send it', aPvc({ storageClassName: '' })],
    ['the released form', aVolume({ capacity: { storage: '10Gi' } })],
    [
      'an explicit reference to its own namespace',
      aVolume({ virtualMachineImage: { name: 'ubuntu', namespace: 'default' } }),
    ],
  ])('are accepted with %s', async (_what, object) => {
    expect(await ask(app, '/validate', { object })).toMatchObject({ allowed: true });
  });
});
