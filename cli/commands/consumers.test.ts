// `bullion delete` and `bullion consumers` of accounts with rights in one namespace.
import { expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { consumersCommand, deleteCommand } from '#cli/commands/consumers.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { imageTypes } from '#shared/catalogue/image.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { runCommand } from '#test/support/command.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const type = imageTypes.hypercloud;

/** Lists what is in its namespace, but no machines. */
const ofOneNamespace = (may: 'edit' | 'view' | 'refused') => {
  const memory = createMemoryKube();
  memory.seed(type, {
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineImage',
    metadata: { name: 'jammy', namespace: 'vms' },
    spec: { source: { http: 'http://a/b' } },
  });
  const asked: string[] = [];
  const kube: KubeClient = {
    ...memory,
    listAll: (listed, options) => {
      if (options?.namespace === undefined || listed.plural === virtualMachines.plural) throw new Denied('forbidden');
      asked.push(listed.plural);
      return memory.listAll(listed, options);
    },
    delete: async (kind, key, options) => {
      if (may === 'view') throw new Denied('User "rita" cannot delete resource "virtualmachineimages"');
      if (may === 'refused') throw new Denied('admission webhook "x" denied the request: it is locked');
      if (options?.dryRun !== true) await memory.delete(kind, key, options);
    },
  };
  const run = (values: Record<string, boolean> = {}) =>
    runCommand(deleteCommand, { kube, namespace: 'vms', positionals: ['jammy'], values });
  return { memory, kube, run, asked };
};

it('says which right is missing to those who may not delete, and nothing else', async () => {
  const { run, asked } = ofOneNamespace('view');
  await expect(run()).rejects.toThrow('cannot delete resource');
  await expect(run({ 'dry-run': true })).rejects.toThrow('cannot delete resource');
  expect(asked).toEqual([]);
});

it('names the consumers before the words of admission', async () => {
  const { run, asked } = ofOneNamespace('refused');
  await expect(run()).rejects.toThrow('it is locked');
  expect(asked).toContain('persistentvolumeclaims');
});

it('deletes with rights in the namespace alone, and says where it has not looked for consumers', async () => {
  const { run, memory } = ofOneNamespace('edit');
  const { code, err } = await run();
  expect([code, memory.all(type)]).toEqual([exitCodes.done, []]);
  expect(err).toMatch(
    /^Disks may be missing here: your account has no right to list persistentvolumeclaims, .* and \d+ more kinds outside namespace vms; virtualmachines.kubevirt.io\nvirtualmachineimage\/jammy is deleted\n$/,
  );
});

it('lists consumers with rights in the namespace alone', async () => {
  const { kube } = ofOneNamespace('view');
  const { code, err } = await runCommand(consumersCommand, { kube, namespace: 'vms', positionals: ['jammy'] });
  expect([code, err]).toEqual([exitCodes.done, expect.stringContaining('Nothing was made from')]);
});
