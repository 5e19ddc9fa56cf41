import { describe, expect, it } from 'vitest';
import { imageOf, importCommand } from '#cli/commands/import.ts';
import { uploadCommand } from '#cli/commands/upload.ts';
import { parseCommandLine } from '#cli/options.ts';
import { HarvesterImageSpec, backendNames } from '#shared/api/harvester/image.ts';
import { HyperCloudImageSpec } from '#shared/api/hypercloud/image.ts';

describe('the image a command line asks for', () => {
  it('is of hypercloud unless said otherwise', () => {
    const image = imageOf('jammy', 'vms', 'https://a.example/jammy.img', { 'storage-class': 'fast', size: '20Gi' });
    expect(image).toEqual({
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: { name: 'jammy', namespace: 'vms' },
      spec: {
        source: { http: 'https://a.example/jammy.img' },
        storageClassName: 'fast',
        pvc: { resources: { requests: { storage: '20Gi' } } },
      },
    });
    expect(HyperCloudImageSpec.parse(image.spec)).toEqual(image.spec);
  });

  it('may be of harvester', () => {
    const { spec } = imageOf('jammy', 'vms', 'http://a/b', { group: 'harvester', checksum: 'sha256:ab' });
    expect(spec).toEqual({
      displayName: 'jammy',
      sourceType: 'download',
      url: 'http://a/b',
      backend: 'csi',
      checksum: 'sha256:ab',
    });
    expect(HarvesterImageSpec.parse(spec)).toMatchObject({ retry: 3 });
  });

  it.each(backendNames)('may be kept by %s', (backend) => {
    const { values } = parseCommandLine(importCommand, [
      'jammy',
      'http://a/b',
      '--group',
      'harvester',
      '--backend',
      backend,
    ]);
    expect(imageOf('jammy', 'vms', 'http://a/b', values).spec).toMatchObject({ backend });
  });

  it('may be an object of the object store, with any key', () => {
    const { spec } = imageOf('jammy', 'vms', 's3://golden/a b/ü.qcow2', {});
    expect(spec).toEqual({ source: { objectStore: { bucketName: 'golden', objectName: 'a b/ü.qcow2' } } });
  });

  it.each([
    ['/tmp/jammy.img', {}, 'is not a source'],
    ['ftp://a/b', {}, 'is not a source'],
    ['s3://bucket', {}, 'is not a source'],
    ['docker://quay.io/a/b', {}, 'DataImportCron'],
    ['http://a/b', { size: 'large' }, 'size is a quantity such as 20Gi, not large'],
    ['http://a/b', { backend: 'csi' }, 'backend does not apply to a hypercloud image'],
    ['http://a/b', { group: 'harvester', size: '1Gi' }, 'size does not apply to a harvester image'],
    ['s3://a/b', { group: 'harvester' }, 'over http or https'],
  ])('%s with %j is refused: %s', (place, values, message) => {
    expect(() => imageOf('jammy', 'vms', place, values)).toThrow(message);
  });
});

describe('an upload', () => {
  it('is offered the backends that it resumes into', () => {
    expect(uploadCommand.options['backend']?.oneOf).toEqual(['cdi', 'csi']);
  });
});
