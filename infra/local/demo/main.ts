// `npm run demo [-- <address or file>]`: a temporary cluster, one import with its progress, and a verification of the volume.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type Cluster, startCluster } from '#infra/local/cluster.ts';
import { bootDisk } from './boot-disk.ts';
import { type DemoSource, type FileServer, prepareSource, startFileServer } from './file-server.ts';
import { buildDemoImage, createScreen, diskOf, followImage, formatSeconds, progressLine, readyOf } from './import.ts';
import { proveGolden } from './golden.ts';
import { fetchReference, proveIdentical } from '#infra/local/demo/prove.ts';
import { HostConfig, parseDemoOptions, demoUsage, toEnvironment } from '#infra/local/options.ts';
import { ensurePrograms, installCommand, qemuImg, qemuSystem, thisHost } from '#infra/local/system-programs.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { loadConfig } from '#shared/runtime/config.ts';
import { AppError, messageOf } from '#shared/runtime/errors.ts';

/** Advice for a failed import, by the reason in its status. */
const advice: Readonly<Record<string, string>> = {
  SourceNotFound: 'check the address: the server has no such file',
  SourceForbidden: 'the server requires credentials, or denies access from this machine',
  SourceAddressRefused: 'only loopback and public addresses are allowed: choose another server',
  SourceRefused: 'the server rejects this request: try the address with curl',
  SourceUnreachable: 'nothing listens at that address: check host, port and network',
  SourceUnavailable: 'the server failed: try again later',
  SourceInterrupted: 'the connection broke several times: try again, or use a nearer mirror',
  SourceStalled: 'the server stopped sending: try again, or use another mirror',
  SourceChanged: 'the file is being replaced on the server: try again later',
  NotADiskImage: 'the address leads to something other than a disk, often a web page: use the direct link to the file',
  UnsupportedFormat: 'use qcow2, raw, ISO, vmdk, vdi, vhd or vhdx, plain or in gz, xz or zst',
  ImageEncrypted: 'remove the encryption first: qemu-img convert to a plain image',
  ImageCorrupt: 'the file is damaged at its source: check it with qemu-img check',
  ImageTruncated: 'the file is shorter than it should be: upload it to the server again',
  ExternalReference: 'the image refers to another file: flatten it with qemu-img convert',
  ImageTooLarge: 'request a larger volume',
  ChecksumMismatch: 'the file does not match the checksum: check both',
};

const adviceFor = (reason: string): string => advice[reason] ?? 'see the message above and the log below';

const screen = createScreen(process.stdout);
const interrupted = new AbortController();
const started = performance.now();
const secondsSince = (time: number): number => (performance.now() - time) / 1000;

const main = async (): Promise<number> => {
  const { source: argument, apiServer, help } = parseDemoOptions(process.argv.slice(2));
  if (help) {
    screen.say(demoUsage);
    return 0;
  }
  await using undo = new AsyncDisposableStack();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void giveUp(undo));
  const environment = toEnvironment(loadConfig(HostConfig));
  await ensurePrograms([qemuImg], screen.say, thisHost(environment.PATH ?? ''));
  const dir = await mkdtemp(join(tmpdir(), 'bullion-demo-'));
  undo.defer(() => rm(dir, { recursive: true, force: true }));
  const server = await startFileServer();
  undo.defer(server.close);
  const source = await prepareSource(argument, server, dir);
  screen.say(`source:  ${source.about}`);

  const begun = performance.now();
  const cluster = await startCluster({ dataDir: join(dir, 'cluster'), apiServer, environment }, interrupted.signal);
  undo.defer(cluster.stop);
  screen.say(`cluster: ready after ${formatSeconds(secondsSince(begun))}`);
  // Awaited here: returning from this function stops the cluster.
  return await importAndProve({ cluster, source, server, dir });
};

/** Removes everything, whatever was in progress. */
const giveUp = async (undo: AsyncDisposableStack): Promise<void> => {
  screen.say('demo: interrupted: removing everything');
  interrupted.abort();
  await undo.disposeAsync().finally(() => process.exit(130));
};

interface Demo {
  readonly cluster: Cluster;
  readonly source: DemoSource;
  readonly server: FileServer;
  readonly dir: string;
}

const importAndProve = async ({ cluster, source, server, dir }: Demo): Promise<number> => {
  const image = buildDemoImage(source.url);
  screen.say(`apply:\n${stringify(image).replaceAll(/^/gm, '  ').trimEnd()}`);
  await cluster.kube.create(hyperCloudImageKind.type, image);
  const begun = performance.now();
  const status = await followImage(cluster, image.metadata, (observed) => screen.progress(progressLine(observed)));
  if (status.state !== 'Available') return reportFailure(status, cluster.logFile);
  const seconds = secondsSince(begun);
  screen.say(
    `image:   available after ${formatSeconds(seconds)}: ${status.format ?? ''}, ${formatBytes(status.size ?? 0)} published, ${formatBytes(status.virtualSize ?? 0)} for the guest`,
  );

  const claim = { namespace: 'default', name: status.children?.volume ?? '' };
  const disk = await diskOf(cluster, claim);
  const file = source.file ?? (await fetchReference(source.url, dir));
  await proveIdentical(disk, { file, format: status.format ?? 'raw', compression: status.compression ?? 'none' }, dir);
  screen.say(`proof:   volume ${claim.name} is identical to the source (qemu-img compare)`);
  if (await hasBooted(disk, source)) await proveGolden({ cluster, server, dir, screen });
  screen.say(
    `demo: ready: ${formatBytes(status.virtualSize ?? 0)} imported and verified in ${formatSeconds(seconds)}, ${formatSeconds(secondsSince(started))} in all`,
  );
  return 0;
};

/** The serial output of an unknown disk is unknown: only our own disk is booted. */
const hasBooted = async (disk: string, { says }: DemoSource): Promise<boolean> => {
  if (says === undefined) return false;
  const result = await bootDisk(disk, says);
  if (result.kind === 'no-emulator')
    screen.say(`boot:    left out, ${qemuSystem.program} is not installed: ${installCommand([qemuSystem])}`);
  if (result.kind === 'matched')
    screen.say(`boot:    after ${formatSeconds(result.seconds)} its serial port printed "${result.line}"`);
  if (result.kind === 'silent')
    throw new BootFailure(`the volume did not boot: its serial port printed ${JSON.stringify(result.output)}`);
  return result.kind === 'matched';
};

class BootFailure extends AppError {
  override readonly code = 'BootFailure' as const;
  override readonly retryable = false;
}

const reportFailure = (status: NonNullable<HyperCloudImage['status']>, logFile: string): number => {
  const { reason = 'Unknown', message = 'no message' } = readyOf(status) ?? {};
  screen.say(`demo: failed: ${reason}: ${message}`);
  screen.say(`what to do: ${adviceFor(reason)}`);
  screen.say(`log: ${logFile} (gone with the throw-away cluster; npm start keeps one)`);
  return 1;
};

try {
  process.exitCode = await main();
} catch (error) {
  // Errors during the shutdown are ignored.
  if (!interrupted.signal.aborted) {
    if (!(error instanceof AppError)) throw error;
    screen.say(`demo: failed: ${error.code}: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}
