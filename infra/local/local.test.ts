import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DemoTerminal, createScreen, formatSeconds, progressLine } from '#infra/local/demo/import.ts';
import { lockDataDir } from '#local-cluster/lock.ts';
import { parseDemoOptions, parseStartOptions } from '#infra/local/options.ts';
import { choosePorts } from '#infra/local/ports.ts';

describe('the command lines', () => {
  it('have defaults', () => {
    expect(parseStartOptions([])).toEqual({
      dataDir: '.bullion',
      apiServer: 'embedded',
      help: false,
      longhorn: true,
      port: undefined,
      tickSeconds: undefined,
    });
    expect(parseDemoOptions([])).toEqual({ source: undefined, apiServer: 'embedded', help: false });
  });

  it('are parsed', () => {
    const args = ['--data-dir', 'd', '--port=6443', '--apiserver', 'real', '--tick', '0.5'];
    expect(parseStartOptions(args)).toMatchObject({ dataDir: 'd', port: 6443, apiServer: 'real', tickSeconds: 0.5 });
    expect(parseDemoOptions(['disk.img']).source).toBe('disk.img');
  });

  it.each([
    [['--port', 'x'], '--port takes a number from 1 to 65535'],
    [['--port', '70000'], '--port takes'],
    [['--tick', ''], '--tick takes'],
    [['--apiserver', 'fake'], 'embedded or real, not fake'],
    [['--unknown'], "'--unknown' (--help lists the options)"],
    [['word'], 'word'],
  ])('reject %j with a message', (args, words) => {
    expect(() => parseStartOptions(args)).toThrow(words);
  });
});

describe('the data directory', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-local-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  it('is used by one cluster at a time', async () => {
    const release = await lockDataDir(dir);
    await expect(lockDataDir(dir)).rejects.toThrow(`(process ${process.pid}) already runs`);
    await release();
    await (
      await lockDataDir(dir)
    )();
  });

  it('is taken over from a cluster that was killed', async () => {
    const script = `import('#local-cluster/lock.ts').then(({ lockDataDir }) => lockDataDir(${JSON.stringify(dir)})).then(() => console.log('held'))`;
    const other = spawn(process.execPath, ['-e', `${script}; setTimeout(() => {}, 60000)`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(other.stdout, 'data');
    await expect(lockDataDir(dir)).rejects.toThrow(`(process ${other.pid}) already runs`);
    const ended = once(other, 'exit');
    other.kill('SIGKILL');
    await ended;
    const release = await lockDataDir(dir);
    await release();
    expect(release).toBeTypeOf('function');
  });

  it('is created with its parent folders', async () => {
    const release = await lockDataDir(join(dir, 'new', 'deep'));
    expect((await stat(join(dir, 'new', 'deep', 'cluster.pid'))).isFile()).toBe(true);
    await release();
  });

  it('is rejected at once with a message when it is not writable', { timeout: 30_000 }, async () => {
    const file = join(dir, 'file');
    await writeFile(file, '');
    await expect(lockDataDir(file)).rejects.toThrow(
      /nothing can be kept in .*file: no file can be written there .*another --data-dir/,
    );
    const below = lockDataDir(join(file, 'a', 'b'));
    await expect(below).rejects.toThrow(/no folder can be made in .*file \(ENOTDIR\); choose another/);
  });

  it.skipIf(!existsSync('/proc/self'))('is rejected below /proc', { timeout: 30_000 }, async () => {
    await expect(lockDataDir('/proc/bullion/cluster')).rejects.toThrow(/no folder can be made in \/proc \(ENOENT\)/);
    await expect(lockDataDir('/proc')).rejects.toThrow(/nothing can be kept in \/proc: no file can be written/);
  });

  it('keeps its ports, and chooses another one when one is in use', async () => {
    const first = await choosePorts(dir);
    expect(await choosePorts(dir)).toEqual(first);
    const squatter = createServer().listen(first.broker, '127.0.0.1');
    await once(squatter, 'listening');
    const second = await choosePorts(dir);
    expect([second.api, second.broker === first.broker]).toEqual([first.api, false]);
    squatter.close();
    expect((await choosePorts(dir, { api: 6443 })).api).toBe(6443);
  });
});

describe('the progress of the demo', () => {
  const terminal = (isTTY: boolean) => {
    const written: string[] = [];
    const screen = createScreen({ isTTY, columns: 40, write: (text) => written.push(text) } satisfies DemoTerminal);
    return { written, screen };
  };

  it('shows phase, bar, percent, bytes, speed and remaining time', () => {
    const transfer = {
      run: 'r',
      reportedAt: '',
      startedAt: '',
      sequence: 1,
      phase: 'Downloading',
      percent: 50,
      receivedBytes: 5 * 2 ** 20,
      totalBytes: 10 * 2 ** 20,
      bytesPerSecond: 2 ** 20,
      etaSeconds: 4.2,
    };
    expect(progressLine({ phase: 'Downloading', progress: 50, transfer })).toBe(
      'Downloading  [##############..............]  50 %  5.0 MiB of 10.0 MiB  1.0 MiB/s  5 s left',
    );
    expect(progressLine({})).toBe('Pending      [............................]   0 %');
  });

  it.each([
    [0.2, '1 s'],
    [59, '59 s'],
    [61, '1 min 1 s'],
  ])('formats %d seconds as %s', (seconds, text) => {
    expect(formatSeconds(seconds)).toBe(text);
  });

  it('redraws one line on a terminal, within its width', () => {
    const { written, screen } = terminal(true);
    screen.progress(progressLine({ phase: 'Downloading', progress: 1 }));
    screen.say('done');
    expect(written).toEqual(['\r\x1b[KDownloading  [.........................', '\ndone\n']);
  });

  it('writes plain lines elsewhere, for each phase and every ten percent', () => {
    const { written, screen } = terminal(false);
    for (const progress of [1, 2, 9, 11, 12]) screen.progress(progressLine({ phase: 'Downloading', progress }));
    screen.progress(progressLine({ phase: 'Verifying', progress: 13 }));
    expect(written.map((line) => line.replace(/\s.*? (\d+ %)/s, ' $1').trim())).toEqual([
      'Downloading 1 %',
      'Downloading 11 %',
      'Verifying 13 %',
    ]);
  });
});
