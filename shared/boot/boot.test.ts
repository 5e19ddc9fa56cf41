import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildBootSector } from '#infra/local/demo/boot-disk.ts';
import { createBootConsole } from '#shared/boot/console.ts';
import { argumentsOf } from '#shared/boot/machine.ts';
import { type BootReport, type BootRequest, parseBootReport, serializeBootReport } from '#shared/boot/report.ts';
import { runBoot } from '#shared/boot/run.ts';
import { isoOf, seedOf } from '#shared/boot/seed.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { hasTools } from '#test/support/tools.ts';

const root = temporaryDirectory();
const diskOf = (sector: Buffer): Buffer => Buffer.concat([sector, Buffer.alloc(2 ** 20)]);
const bootSector = (text: string): Buffer => diskOf(buildBootSector(`\r\n${text}`, 1));
/** By the power management of the chipset. */
const switchesOff = (): Buffer => {
  const sector = buildBootSector('', 1);
  Buffer.from([0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef, 0xf4]).copy(sector);
  return diskOf(sector);
};
const request: BootRequest = {
  until: 'ConsoleText',
  text: 'login:',
  timeoutMs: 30_000,
  memoryMib: 64,
  firmware: 'bios',
};

describe.skipIf(!hasTools('qemu-system-x86_64'))('a boot by the real QEMU', { timeout: 60_000 }, () => {
  const bootOf = (disk: Buffer, over: Partial<BootRequest> = {}, signal = new AbortController().signal) => {
    const path = join(root, 'disk.img');
    writeFileSync(path, disk);
    return runBoot({ ...request, ...over }, { disk: path, scratchDir: root, signal, accelerator: 'emulation' });
  };

  /** Processes that hold the disk: another boot of it would be refused. */
  const holders = (): readonly string[] =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(join(root, 'disk.img'));
      } catch {
        // It ended meanwhile.
        return false;
      }
    });

  const rows: readonly (readonly [string, Buffer, Partial<BootRequest>, Partial<BootReport>])[] = [
    [
      'passes when its console shows the text',
      bootSector('Debian GNU/Linux 12 host ttyS0\r\n\r\nhost login: '),
      {},
      {
        outcome: 'passed',
        message: expect.stringMatching(/^its serial console shows "login:" after \d+s \(emulation\)$/),
        console: expect.stringContaining('host login:'),
      },
    ],
    [
      'fails at once when the guest panics, with its words',
      bootSector('[    1.2] Kernel panic - not syncing: VFS: Unable to mount root fs'),
      {},
      {
        outcome: 'failed',
        message: 'the guest panicked: [    1.2] Kernel panic - not syncing: VFS: Unable to mount root fs',
      },
    ],
    [
      'fails when the guest switches itself off',
      switchesOff(),
      { until: 'Running' },
      { outcome: 'failed', message: 'the guest shut down by itself', console: expect.stringContaining('SeaBIOS') },
    ],
    [
      'is over when the sign does not come, and says what the firmware said',
      Buffer.alloc(2 ** 20),
      { timeoutMs: 4000 },
      {
        outcome: 'timed out',
        message: 'its serial console did not show "login:" within 4s (emulation)',
        console: expect.stringContaining('No bootable device'),
      },
    ],
    [
      'passes when the guest runs on',
      bootSector('hello'),
      { until: 'Running', runningForMs: 2000 },
      { outcome: 'passed', message: expect.stringMatching(/^it runs after ([2-9]|\d\d+)s \(emulation\)$/) },
    ],
    [
      'is over when neither an agent',
      bootSector('hello'),
      { until: 'AgentConnected', timeoutMs: 3000 },
      { outcome: 'timed out', message: 'its guest agent did not answer within 3s (emulation)' },
    ],
    [
      'nor a port answers',
      bootSector('hello'),
      { until: 'PortAnswers', port: 22, timeoutMs: 3000 },
      { outcome: 'timed out', message: 'port 22 did not answer within 3s (emulation)' },
    ],
    [
      'says nothing of a guest that cannot be run',
      bootSector('hello'),
      { memoryMib: 2 ** 40 },
      { outcome: 'not run', message: expect.stringMatching(/^QEMU ended with exit code 1: /) },
    ],
  ];
  it.each(rows)('%s', async (_, disk, over, wanted) => {
    expect(await bootOf(disk, over)).toMatchObject(wanted);
    expect(holders()).toEqual([]);
  });

  it('says nothing of a guest that somebody ends', async () => {
    const ending = new AbortController();
    setTimeout(() => ending.abort(), 1000);
    expect(await bootOf(bootSector('hello'), { until: 'Running' }, ending.signal)).toMatchObject({
      outcome: 'not run',
      message: 'it was ended before it had a result',
    });
  });
});

it('names what is missing where there is no QEMU', async () => {
  const path = process.env['PATH'];
  process.env['PATH'] = root;
  try {
    const options = { disk: 'none', scratchDir: root, signal: new AbortController().signal };
    expect(await runBoot(request, options)).toMatchObject({
      outcome: 'not run',
      message: expect.stringMatching(/install QEMU for x86.*BOOT_IMAGE/),
    });
  } finally {
    process.env['PATH'] = path;
  }
});

describe('a serial console', () => {
  it('has a panic whose line is complete only at its end', () => {
    const console = createBootConsole();
    const add = (text: string): void => console.add(Buffer.from(text));
    add('\r\n[    1.2] Kernel panic - not');
    expect(console.panic()).toBeUndefined();
    add(' syncing: VFS: Unable to m');
    const part = '[    1.2] Kernel panic - not syncing: VFS: Unable to m';
    expect(console.panic()).toEqual({ words: part, isComplete: false });
    add('ount root fs\r\nCPU: 0');
    expect(console.panic()).toEqual({ words: `${part}ount root fs`, isComplete: true });
  });

  it('is text, whatever pieces it comes in', () => {
    const console = createBootConsole();
    for (const piece of ['\x1b[0;3', '2m  OK  \x1b[0m Started\r\n\x1b]0;ti', 'tle\x07\x1b[2J\x00lo', 'gin: ', '\x1b'])
      console.add(Buffer.from(piece));
    expect(console.has('login: ')).toBe(true);
    expect(console.end()).toBe('  OK   Started\nlogin:');
  });

  it('shows no credentials, and its end alone', () => {
    const console = createBootConsole();
    console.add(Buffer.from(`${'line\n'.repeat(5000)}password=hunter22\n`));
    expect(console.end().length).toBeLessThanOrEqual(2000);
    expect(console.end()).toMatch(/\nline\npassword=\[redacted\]$/);
  });
});

it('a report fits into a termination message, whatever the console has', () => {
  const report: BootReport = { outcome: 'failed', message: 'm'.repeat(5000), console: '\u{1F980}"\n'.repeat(2000) };
  const text = serializeBootReport(report);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
  expect(parseBootReport(text)).toMatchObject({ outcome: 'failed' });
  expect(parseBootReport('panic')).toBe(undefined);
});

describe('the seed', () => {
  it('is an ISO 9660 image with the label that cloud-init looks for', () => {
    const image = isoOf({ 'user-data': 'x'.repeat(3000), 'meta-data': '{}' });
    expect(image.subarray(32_769, 32_774).toString()).toBe('CD001');
    expect(image.subarray(32_808, 32_814).toString()).toBe('CIDATA');
    expect(image.length).toBe(24 * 2048);
    expect(image.readUInt32LE(32_768 + 80)).toBe(24);
    expect(image.toString('latin1')).toContain('USER-DATA.;1');
  });

  it('does not hold the line that it asks for', () => {
    expect(seedOf('f00d').toString('latin1')).not.toContain('finished f00d');
    expect(seedOf('f00d').equals(seedOf('f00d'))).toBe(true);
  });
});

it('paths with commas are one value for QEMU', () => {
  const argv = argumentsOf({ request, disk: '/a,b/disk.img', seed: '/s', accelerator: 'kvm' });
  expect(argv.join(' ')).toContain('file=/a,,b/disk.img');
});
