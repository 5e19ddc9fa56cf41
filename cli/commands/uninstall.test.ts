import { beforeEach, describe, expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { uninstallCommand } from '#cli/commands/uninstall.ts';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import { configMaps, secrets } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { finalizers } from '#shared/api/names.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const { type } = hyperCloudImageKind;
const target = { namespace: 'bullion-system', name: 'backup-target' };

describe('bullion uninstall, before it is told to', () => {
  let kube: MemoryKube;
  beforeEach(() => {
    kube = createMemoryKube();
    kube.seed(crds, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${type.plural}.${type.group}`, labels: { 'app.kubernetes.io/part-of': 'bullion' } },
    } as never);
    kube.seed(type, aHyperCloudImage({ metadata: { namespace: 'ns', name: 'plain' } }));
    kube.seed(type, aHyperCloudImage({ metadata: { namespace: 'ns', name: 'kept', finalizers: [finalizers.backup] } }));
  });

  const list = async (): Promise<string> => {
    const { code, text } = await runCommand(uninstallCommand, { kube, namespace: 'ns' });
    expect(code).toBe(exitCodes.failed);
    expect(kube.calls.filter(({ verb }) => verb !== 'get' && verb !== 'list')).toEqual([]);
    return text;
  };

  it('says what would go', async () => {
    const said = await list();
    expect(said).toMatch(/kept -n ns\n.*plain -n ns/);
    expect(said).toContain('2 objects would be deleted');
    expect(said).not.toContain('restore');
  });

  it('says that images in a backup target would not be restored, and what to do', async () => {
    const data = { type: 's3', endpoint: 'https://s3.example', bucketName: 'backups' };
    kube.seed(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: target, data });
    const keys = { accessKeyId: 'YQ==', secretKey: 'Yg==' };
    kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: target, data: keys });
    expect(await list()).toMatch(/1 of them are kept in \S*backups\S*, .* ConfigMap backup-target in bullion-system/s);
  });
});
