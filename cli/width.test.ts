// Tables of the command line with the longest names that Kubernetes takes: within the screen of a person, and whole for programs and `-o wide`.
import { describe, expect, it } from 'vitest';
import { type ClusterCommand, type Values, exitCodes } from '#cli/command.ts';
import { backupTable } from '#cli/commands/backups.ts';
import { consumersCommand } from '#cli/commands/consumers.ts';
import { getCommand } from '#cli/commands/get.ts';
import { imagesCommand } from '#cli/commands/images.ts';
import { queueCommand } from '#cli/commands/queue.ts';
import { tableOf } from '#cli/output.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const long = (what: string): string => `${what}-${'x'.repeat(61 - what.length - 5)}-end`;
const namespace = long('namespace');
const name = long('fedora');
const host = `${'registry.'.repeat(6)}example`;
const ready = { type: 'Ready', status: 'False', reason: 'SourceAddressRefused', message: 'a text. '.repeat(40) };
const creationTimestamp = '2026-01-02T03:04:05Z';

const aCluster = () => {
  const kube = createMemoryKube();
  const status = { phase: 'WaitingForLonghorn', progress: 100, virtualSize: 10 * 2 ** 30, conditions: [ready] };
  const metadata = { namespace, name, creationTimestamp };
  kube.seed(harvesterImageKind.type, {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { ...metadata, uid: 'uid-image' },
    spec: { backend: 'csi', displayName: 'fedora', sourceType: 'upload', retry: 0 },
    status,
  } as never);
  kube.seed(dataVolumeKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: {
      ...metadata,
      name: long('disk'),
      annotations: { [harvesterAnnotations.imageId]: `${namespace}/${name}` },
    },
    spec: { source: { pvc: { namespace, name } } },
    status,
  } as never);
  for (const machine of ['one', 'two', 'three'])
    kube.seed(virtualMachines, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { ...metadata, name: long(machine) },
      spec: { template: { spec: { volumes: [{ name: 'root', dataVolume: { name: long('disk') } }] } } },
    } as never);
  kube.seed(jobs, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...metadata,
      name: 'import-uid-image',
      labels: { [labels.queue]: 'import', [labels.ownerKind]: 'VirtualMachineImage.harvesterhci.io' },
      annotations: {
        [annotations.ownerName]: name,
        [annotations.sourceHost]: host,
        [annotations.queuePlace]: '112 of 113 in the queue of the cluster',
      },
    },
    spec: { suspend: true, template: { spec: { containers: [] } } },
  } as never);
  return kube;
};

const run = async (command: ClusterCommand, values: Values, columns?: number) => {
  const positionals = command.name === 'consumers' ? [`harvester/${name}`] : [];
  const now = new Date('2026-01-02T04:04:05Z');
  const { code, out } = await runCommand(command, { kube: aCluster(), namespace, positionals, values, columns, now });
  expect(code).toBe(exitCodes.done);
  return out;
};
const widthOf = (table: string): number => Math.max(...table.split('\n').map((line) => line.length));

describe.each([imagesCommand, getCommand, queueCommand, consumersCommand])('the table of bullion $name', (command) => {
  const everywhere = command === consumersCommand ? {} : { 'all-namespaces': true };

  it.each([80, 100, 120])('fits a screen of %d columns', async (columns) => {
    const table = await run(command, everywhere, columns);
    expect(table.split('\n').length).toBeGreaterThan(2);
    expect(widthOf(table)).toBeLessThanOrEqual(columns);
    expect(table).toContain('…');
  });

  it('is whole for a program, with -o wide, and on a wide screen', async () => {
    const whole = await run(command, everywhere);
    expect(widthOf(whole)).toBeGreaterThan(120);
    expect(whole).toContain(namespace);
    expect(whole).not.toContain('…');
    expect(await run(command, everywhere, widthOf(whole))).toBe(whole);
    expect(await run(command, { ...everywhere, output: 'wide' }, 120)).not.toContain('…');
  });
});

describe('the table of bullion backups', () => {
  it.each([true, false])('fits a screen of 120 columns, with a dry run: %s', (isDryRun) => {
    const entry = { key: `images/${namespace}/${name}.json`, problem: 'this is no metadata of an image. '.repeat(9) };
    expect(widthOf(backupTable([entry] as never, isDryRun, undefined))).toBeGreaterThan(120);
    expect(widthOf(backupTable([entry] as never, isDryRun, 120))).toBeLessThanOrEqual(120);
  });
});

describe('cells that are cut', () => {
  it('are the widest ones; names keep their end, and texts their beginning', () => {
    const rows = [['vms', `fedora-${'0'.repeat(40)}-9ab6e2a1c1f0`, 'the source is away '.repeat(4)]];
    const [, line = ''] = tableOf(['NAMESPACE', 'NAME', 'MESSAGE'], rows, 80).split('\n');
    expect(line).toMatch(/^vms {9}fedora-0+…0+-9ab6e2a1c1f0 {3}the source is away the source.*…$/);
    expect(line.length).toBeLessThanOrEqual(80);
  });
});
