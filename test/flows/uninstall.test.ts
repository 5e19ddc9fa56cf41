// Uninstalling, with images and disks in every state: nothing is left, and nothing waits for functions that were deleted.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ExitCode, exitCodes } from '#cli/command.ts';
import { runCommandLine } from '#cli/run.ts';
import { buildExportVolume } from '#infra/generate/components.ts';
import { installCrds } from '#local-cluster/install.ts';
import { buildOpenCrd } from '#infra/local/manifests.ts';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import { namespaces, persistentVolumes } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import { finalizers } from '#shared/api/names.ts';
import { virtualMachinePvcKind } from '#shared/api/hypercloud/volume.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { anImage, followUntil, images, leftOvers, namespace, settle } from '#test/support/cluster.ts';
import { type DiskCluster, startDiskCluster } from '#test/support/disk-cluster.ts';
import { infraDir } from '#test/support/overlay.ts';
import { hasKubectl } from '#test/support/tools.ts';

/** As in the component `nfs-backups`. */
const [exportVolume] = buildExportVolume();

const machine = { namespace, name: 'web' };
/** A machine that waits for its disk, and creates none. */
const ofNothing = JSON.stringify([
  { metadata: { name: 'web-root', annotations: { [harvesterAnnotations.imageId]: 'default/none' } } },
]);

describe('bullion uninstall', { timeout: 400_000 }, () => {
  let offered: DiskCluster;
  beforeAll(async () => {
    offered = await startDiskCluster();
    const { kube } = offered.cluster;
    await settle(kube, anImage('ready', { source: { http: offered.url } }));
    await settle(kube, anImage('failed', { source: { http: `${offered.url}-missing` } }));
    await kube.create(virtualMachinePvcKind.type, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachinePvc',
      metadata: { namespace, name: 'disk' },
      spec: { virtualMachineImageName: 'ready' },
    } as never);
    await kube.create(dataImportCronKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { namespace, name: 'golden' },
      spec: {
        schedule: '@daily',
        managedDataSource: 'golden',
        template: {
          spec: {
            source: { http: { url: offered.url } },
            storage: { storageClassName: 'local', resources: { requests: { storage: '32Mi' } } },
          },
        },
      },
    } as never);
    await kube.create(persistentVolumes, exportVolume as never);
    await installCrds(kube, [buildOpenCrd(virtualMachines)]);
    await kube.create(virtualMachines, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { ...machine, annotations: { [harvesterAnnotations.claimTemplates]: ofNothing } },
      spec: {},
    });
    await kube.create(images, anImage('running', { source: { http: offered.url } }));
    await followUntil(kube, 'running', () => true);
  });
  afterAll(() => offered?.close());

  const bullion = async (...args: readonly string[]): Promise<{ code: ExitCode; said: string }> => {
    let said = '';
    const note = (text: string) => void (said += text);
    const terminal = { out: note, err: note, isLive: false, now: () => new Date() };
    const line = ['uninstall', ...args, '--kubeconfig', offered.cluster.kubeconfigPath];
    const code = await runCommandLine(line, { terminal, signal: new AbortController().signal });
    return { code, said };
  };
  const ourKinds = async () =>
    (await offered.cluster.kube.list(crds, { labelSelector: 'app.kubernetes.io/part-of=bullion' })).items.length;

  it('lists what would be deleted, and changes nothing before it is confirmed', async () => {
    const held = async () => (await offered.cluster.kube.get(virtualMachines, machine))?.metadata.finalizers;
    await expect.poll(held, { timeout: 150_000 }).toContain(finalizers.machine);
    const { code, said } = await bullion();
    expect(code).toBe(exitCodes.failed);
    expect(said).toContain('virtualmachineimage.hypercloud.tmaxanc.com/ready -n default');
    expect((await offered.cluster.kube.get(images, { namespace, name: 'ready' }))?.metadata.deletionTimestamp).toBe(
      undefined,
    );
  });

  it('deletes nothing of Bullion while an object has a finalizer that nothing removes, and reports it', async () => {
    const { kube } = offered.cluster;
    await kube.mergePatch(
      images,
      { namespace, name: 'failed' },
      { metadata: { finalizers: ['bullion.dev/image', 'example.com/mine'] } },
    );
    const stuck = 'bullion.dev/clone';
    await kube.mergePatch(
      images,
      { namespace, name: 'failed' },
      { metadata: { finalizers: ['example.com/mine', stuck] } },
    );
    const { code, said } = await bullion('--yes', '--timeout', '8s');
    expect(code).toBe(exitCodes.timedOut);
    expect(said).toContain('virtualmachineimage.hypercloud.tmaxanc.com/failed -n default');
    expect(await ourKinds()).toBeGreaterThan(5);
    await kube.mergePatch(images, { namespace, name: 'failed' }, { metadata: { finalizers: null } });
  });

  it('then continues to the end: no object, no volume, no kind, no namespace', async () => {
    const { kube, dataDir } = offered.cluster;
    const { code, said } = await bullion('--yes', '--timeout', '240s');
    expect(said).toContain('Bullion is uninstalled.');
    expect(code).toBe(exitCodes.done);
    expect(await ourKinds()).toBe(0);
    expect(await kube.get(namespaces, { name: 'bullion-system' })).toBe(undefined);
    expect(await kube.get(persistentVolumes, { name: exportVolume?.metadata.name ?? '' })).toBe(undefined);
    expect(await leftOvers(kube, dataDir)).toEqual([]);
    const left = await kube.get(virtualMachines, machine);
    expect({ isThere: left !== undefined, finalizers: left?.metadata.finalizers ?? [] }).toEqual({
      isThere: true,
      finalizers: [],
    });
  });

  it.skipIf(!hasKubectl())('releases machines with kubectl alone, as docs/install.md says', async () => {
    const { kube, kubeconfigPath } = offered.cluster;
    const others = ['example.com/first', 'example.com/last'];
    const [first = '', last = ''] = others;
    const held = {
      held: [first, finalizers.machine, last],
      alone: [finalizers.machine],
      free: undefined,
      other: others,
    };
    for (const [name, names] of Object.entries(held)) {
      const metadata = { namespace, name, ...(names === undefined ? {} : { finalizers: names }) };
      await kube.create(virtualMachines, { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata, spec: {} });
    }
    const text = readFileSync(join(infraDir, '../docs/install.md'), 'utf8');
    const [all = ''] = /^finalizer=bullion\.dev\/[^]+?\n {2}done$/m.exec(text) ?? [];
    // What other tests made keeps its finalizers.
    const command = all.replace('for kinds in bullion virtualmachines', 'for kinds in virtualmachines');
    expect(command).not.toBe(all);
    await promisify(execFile)('sh', ['-ec', command], { env: { ...process.env, KUBECONFIG: kubeconfigPath } });
    const { items } = await kube.list(virtualMachines, { namespace });
    expect(Object.fromEntries(items.map(({ metadata }) => [metadata.name, metadata.finalizers]))).toMatchObject({
      held: others,
      other: others,
    });
    const heldByUs = items.filter(({ metadata }) => metadata.finalizers?.includes(finalizers.machine) === true);
    expect(heldByUs.map(({ metadata }) => metadata.name)).toEqual([]);
  });

  it('and again, when nothing is left', async () => {
    expect((await bullion('--yes')).code).toBe(exitCodes.done);
  });
});
