// The second part of the demo: a version of a golden image, which Bullion boots before a channel takes it.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '#infra/local/cluster.ts';
import { bootLine, writeBootDisk } from './boot-disk.ts';
import type { FileServer } from './file-server.ts';
import { formatSeconds, type Screen } from './import.ts';
import { type CheckStatus, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

const mib = 2 ** 20;
const name = 'golden';
const key = { namespace: 'default', name };
const mostMs = 120_000;

interface GoldenDemo {
  readonly cluster: Cluster;
  readonly server: FileServer;
  readonly dir: string;
  readonly screen: Screen;
}

/** A disk that prints a line, and the checksum file beside it: its digest names the version. */
const publish = async ({ server, dir }: GoldenDemo): Promise<string> => {
  const [disk, sums] = [join(dir, 'golden.raw'), join(dir, 'SHA256SUMS')];
  await writeBootDisk(disk, { bytes: 4 * mib, dataBytes: mib, line: `\r\n${bootLine}` });
  const hex = createHash('sha256')
    .update(await readFile(disk))
    .digest('hex');
  await writeFile(sums, `${hex} *golden.raw\n`);
  server.offer('golden.raw', disk);
  server.offer('SHA256SUMS', sums);
  return `${name}-${hex.slice(0, 12)}`;
};

const createCron = ({ cluster: { kube }, server }: GoldenDemo): Promise<unknown> =>
  kube.create(dataImportCronKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: key,
    spec: {
      source: { http: { url: `${server.url}/golden.raw`, checksumURL: `${server.url}/SHA256SUMS` } },
      schedule: '0 */12 * * *',
      managedDataSource: name,
    },
  });

const createPolicy = ({ cluster: { kube } }: GoldenDemo): Promise<unknown> =>
  kube.create(goldenImagePolicyKind.type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: key,
    spec: {
      dataImportCrons: { names: [name] },
      channels: [{ name: 'stable', dataSource: name }],
      verify: { boot: { until: 'ConsoleText', text: bootLine, timeout: '60s', memory: '64Mi' } },
    },
  });

/** Of the version and of the channel that is to take it. */
const readBoot = async ({ cluster: { kube } }: GoldenDemo, version: string) => {
  const { status } = (await kube.get(goldenImagePolicyKind.type, key)) ?? {};
  const checks = status?.versions?.find((one) => one.name === version)?.checks;
  return { check: checks?.find((one) => one.name === 'boot'), channel: status?.channels?.[0] };
};

/** The boot of the version, once the channel has it. */
const untilTaken = async (demo: GoldenDemo, version: string): Promise<CheckStatus> => {
  const end = Date.now() + mostMs;
  for (;;) {
    const { check, channel } = await readBoot(demo, version);
    if (check?.state === 'Passed' && channel?.version === version) return check;
    if (check?.state === 'Failed' || Date.now() > end)
      throw new Unavailable(`version ${version} was not booted: ${(check ?? channel)?.message ?? 'no message'}`);
    await sleep(200);
  }
};

/** Requires QEMU. */
export const proveGolden = async (demo: GoldenDemo): Promise<void> => {
  const begun = performance.now();
  const version = await publish(demo);
  await createCron(demo);
  await createPolicy(demo);
  const { message, output = '' } = await untilTaken(demo, version);
  const seconds = formatSeconds((performance.now() - begun) / 1000);
  demo.screen.say(
    `golden:  after ${seconds} channel stable has ${version}, which a policy had booted in a Job: ${message}`,
  );
  demo.screen.say(`console:\n${output.replaceAll(/^/gm, '  ')}`);
};
