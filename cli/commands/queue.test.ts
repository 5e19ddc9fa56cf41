// `bullion queue -w`: how far each transfer is, for a person and for a file.
import { expect, it } from 'vitest';
import { queueCommand } from './queue.ts';
import { exitCodes } from '#cli/command.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'vms';
const uid = 'uid-jammy';

const world = () => {
  const kube = createMemoryKube();
  kube.seed(hyperCloudImageKind.type, {
    ...aHyperCloudImage(),
    metadata: { namespace, name: 'jammy', uid },
    status: { progress: 40, transfer: { bytesPerSecond: 2048, etaSeconds: 7 } },
  } as never);
  const marks = { [labels.ownerUid]: uid, [labels.ownerKind]: 'VirtualMachineImage.hypercloud.tmaxanc.com' };
  kube.seed(jobs, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { namespace, name: 'import-jammy', labels: marks, annotations: { [annotations.ownerName]: 'jammy' } },
    spec: { template: { spec: { containers: [] } } },
  } as never);
  return kube;
};

it.each([
  [undefined, /40% 2\.0 KiB\/s, 7s left/],
  [160, /█{8}░{12} 40% 2\.0 KiB\/s, 7s left/],
])('shows the progress of each, until it is interrupted: on %s columns', async (columns, text) => {
  const stop = new AbortController();
  let printed = '';
  const terminal = {
    out: (words: string) => {
      printed += words;
      stop.abort();
    },
    err: () => undefined,
    isLive: false,
    now: () => new Date(),
    columns,
  };
  const call = { kube: world(), namespace, positionals: [], values: { watch: true }, terminal, signal: stop.signal };
  const code = await queueCommand.run({ ...call, bearer: () => Promise.resolve(undefined) });
  expect(printed).toMatch(/OBJECT +TRANSFER.* PROGRESS\nvms +VirtualMachineImage\/jammy +import/);
  expect(printed).toMatch(text);
  expect(code).toBe(exitCodes.interrupted);
});
