// Boots a disk once by QEMU, and says whether it has started. Never throws. Called by boot-job.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { constants, existsSync } from 'node:fs';
import { access, copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { type BootConsole, createBootConsole } from '#shared/boot/console.ts';
import { type Accelerator, agentDescriptor, argumentsOf, probeArguments, program } from '#shared/boot/machine.ts';
import { type BootReport, type BootRequest, usualRunMs, usualTimeoutMs } from '#shared/boot/report.ts';
import { finishedLine, seedOf } from '#shared/boot/seed.ts';
import { agentAnswers, freePort, portAnswers } from '#shared/boot/signs.ts';
import { toSpan } from '#shared/runtime/age.ts';
import { messageOf } from '#shared/runtime/errors.ts';

export interface BootOptions {
  readonly disk: string;
  /** A folder for the seed and the variables of the firmware. */
  readonly scratchDir: string;
  /** Aborted when the pod is terminated. */
  readonly signal: AbortSignal;
  /** Gets what the guest writes on its serial console. */
  readonly echo?: ((piece: Buffer) => void) | undefined;
  /** Default: KVM where it works. */
  readonly accelerator?: Accelerator | undefined;
}

/** Of Debian, and of Fedora: code, and variables. */
const firmwares = [
  ['/usr/share/OVMF/OVMF_CODE_4M.fd', '/usr/share/OVMF/OVMF_VARS_4M.fd'],
  ['/usr/share/OVMF/OVMF_CODE.fd', '/usr/share/OVMF/OVMF_VARS.fd'],
  ['/usr/share/edk2/ovmf/OVMF_CODE.fd', '/usr/share/edk2/ovmf/OVMF_VARS.fd'],
] as const;

/** In good machines a fraction of a second. */
const mostProbeMs = 5000;

/** KVM may be there and not work, as in some nested machines: detected by the firmware, which reports that it has nothing to start. */
const isKvmGood = (): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(program, probeArguments(), { stdio: ['ignore', 'pipe', 'ignore'] });
    const console = createBootConsole();
    const end = (is: boolean): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve(is);
    };
    const timer = setTimeout(() => end(false), mostProbeMs);
    child.once('error', () => end(false));
    child.once('exit', () => end(false));
    child.stdout.on('data', (piece: Buffer) => {
      console.add(piece);
      if (console.has('No bootable device')) end(true);
    });
  });

const findAccelerator = async (): Promise<Accelerator> => {
  const canOpen = await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  return canOpen && (await isKvmGood()) ? 'kvm' : 'emulation';
};

const prepareFirmware = async (scratchDir: string) => {
  const [code, original] = firmwares.find(([path]) => existsSync(path)) ?? [];
  if (code === undefined || original === undefined)
    throw new Error(`there is no UEFI firmware in ${firmwares[0][0]}: install the package ovmf`);
  const variables = join(scratchDir, 'efi-variables.fd');
  await copyFile(original, variables);
  return { code, variables };
};

/** What is known of a boot that goes on. */
interface Boot {
  readonly request: BootRequest;
  readonly console: BootConsole;
  readonly token: string;
  readonly child: ChildProcess;
  readonly forwardedFrom: number | undefined;
  readonly signal: AbortSignal;
}

type Result = Omit<BootReport, 'console'>;
const passed = (message: string): Result => ({ outcome: 'passed', message });

const pollMs = 200;

/** Until the console has it. */
const written = async ({ console, signal }: Boot, text: string): Promise<void> => {
  while (!signal.aborted && !console.has(text)) await delay(pollMs);
};

/** Resolves once the condition is met, with a description of it. */
const signOf = async (boot: Boot): Promise<string> => {
  const { request, token, child, signal, forwardedFrom = 0 } = boot;
  switch (request.until) {
    case 'AgentConnected': {
      const name = await agentAnswers(child.stdio[agentDescriptor] as Duplex, signal);
      return `its guest agent answered${name === undefined ? '' : ` (${name})`}`;
    }
    case 'CloudInitFinished':
      await written(boot, finishedLine(token));
      return 'cloud-init has finished';
    case 'ConsoleText':
      await written(boot, request.text ?? '');
      return `its serial console shows ${JSON.stringify(request.text)}`;
    case 'PortAnswers':
      await portAnswers(forwardedFrom, signal);
      return `port ${request.port} answers`;
    case 'Running':
      await delay(request.runningForMs ?? usualRunMs, undefined, { signal }).catch(() => {});
      return 'it runs';
  }
};

const waitedFor: Readonly<Record<BootRequest['until'], (request: BootRequest) => string>> = {
  AgentConnected: () => 'its guest agent did not answer',
  CloudInitFinished: () => 'cloud-init did not finish',
  ConsoleText: ({ text }) => `its serial console did not show ${JSON.stringify(text)}`,
  PortAnswers: ({ port }) => `port ${port} did not answer`,
  Running: () => 'it did not run',
};

/** Polls after which a line without an end is taken for complete. */
const stillPolls = 5;

/** A machine that panicked does not come up however long one waits. */
const panicked = async ({ console, signal }: Boot): Promise<Result> => {
  let [before, unchanged] = ['', 0];
  for (;;) {
    const { words = '', isComplete = false } = console.panic() ?? {};
    unchanged = words === before ? unchanged + 1 : 0;
    before = words;
    if (words !== '' && (isComplete || unchanged >= stillPolls))
      return { outcome: 'failed', message: `the guest panicked: ${words}` };
    await delay(pollMs, undefined, { signal });
  }
};

/** QEMU ends with 0 where the guest has ended, and with something else where it could not be run. */
const ended = ({ child }: Boot, errors: () => string): Promise<Result> =>
  new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      const message =
        error.code === 'ENOENT'
          ? `${program} is not installed where the boot runs: on the local cluster install QEMU for x86 (package qemu-system-x86); elsewhere BOOT_IMAGE must name an image that has it`
          : `${program} cannot be started: ${messageOf(error)}`;
      resolve({ outcome: 'not run', message });
    });
    child.once('exit', (code, signal) => {
      if (code === 0) return resolve({ outcome: 'failed', message: 'the guest shut down by itself' });
      const why = errors().trim().slice(-300);
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
      return resolve({ outcome: 'not run', message: `QEMU ended ${how}${why === '' ? '' : `: ${why}`}` });
    });
  });

const watch = async (boot: Boot, accelerator: Accelerator, errors: () => string): Promise<Result> => {
  const { request } = boot;
  const timeoutMs = request.timeoutMs ?? usualTimeoutMs[accelerator];
  const by = accelerator === 'kvm' ? 'KVM' : 'emulation';
  const began = performance.now();
  const overMs = request.until === 'Running' ? (request.runningForMs ?? usualRunMs) + timeoutMs : timeoutMs;
  return Promise.race([
    signOf(boot).then((how) => {
      boot.signal.throwIfAborted();
      // Rounded: a timer may end a moment early, and who ran for two seconds did not run for one.
      const seconds = Math.round((performance.now() - began) / 1000);
      return passed(`${how} after ${toSpan(seconds * 1000)} (${by})`);
    }),
    ended(boot, errors),
    panicked(boot),
    delay(overMs, undefined, { signal: boot.signal }).then((): Result => ({
      outcome: 'timed out',
      message: `${waitedFor[request.until](request)} within ${toSpan(timeoutMs)} (${by})`,
    })),
  ]);
};

/** Resolves once it has let go of the disk. */
const end = async (child: ChildProcess): Promise<void> => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
};

export const runBoot = async (request: BootRequest, options: BootOptions): Promise<BootReport> => {
  const console = createBootConsole();
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  let child: ChildProcess | undefined;
  try {
    const { scratchDir, disk } = options;
    const accelerator = options.accelerator ?? (await findAccelerator());
    const token = randomBytes(8).toString('hex');
    const seed = join(scratchDir, 'seed.iso');
    await writeFile(seed, seedOf(token));
    const efi = request.firmware === 'efi' ? await prepareFirmware(scratchDir) : undefined;
    const forwardedFrom = request.port === undefined ? undefined : await freePort();
    const argv = argumentsOf({ request, disk, seed, accelerator, efi, forwardedFrom });
    child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
    let errors = '';
    child.stderr?.on('data', (piece: Buffer) => void (errors = (errors + piece.toString('utf8')).slice(-4096)));
    child.stdout?.on('data', (piece: Buffer) => {
      console.add(piece);
      options.echo?.(piece);
    });
    const result = await watch({ request, console, token, child, forwardedFrom, signal }, accelerator, () => errors);
    return { ...result, console: console.end() };
  } catch (error) {
    const message = options.signal.aborted ? 'it was ended before it had a result' : messageOf(error);
    return { outcome: 'not run', message, console: console.end() };
  } finally {
    over.abort();
    if (child !== undefined) await end(child);
  }
};
