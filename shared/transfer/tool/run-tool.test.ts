import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { runTool } from './run-tool.ts';

const signal = new AbortController().signal;
const limits = { cpuSeconds: 5, memoryBytes: 2 ** 30 };
const canIsolate = spawnSync('unshare', ['--user', '--map-current-user', '--net', 'true']).status === 0;

describe('a program with limits', () => {
  it.skipIf(!canIsolate)('has no network except its own loopback, which is down', async () => {
    const { status, output } = await runTool({ program: 'cat', args: ['/proc/net/dev'], signal, limits });
    const interfaces = output.split('\n').filter((line) => line.includes(':'));
    expect(status).toBe(0);
    expect(interfaces.map((line) => line.split(':')[0]?.trim())).toEqual(['lo']);
  });

  it('cannot use more memory', async () => {
    const args = ['-c', 'head -c 200000000 /dev/zero | tail'];
    const { status } = await runTool({ program: 'sh', args, signal, limits: { ...limits, memoryBytes: 64 * 2 ** 20 } });
    expect(status).not.toBe(0);
  });

  it('does not run without limits', async () => {
    // No limit can exceed that of this process.
    const beyond = { ...limits, cpuSeconds: Number.MAX_SAFE_INTEGER * 1e6 };
    const { status, output } = await runTool({ program: 'echo', args: ['ran'], signal, limits: beyond });
    expect([status === 0, output]).toEqual([false, '']);
  });

  it('is reported when it is missing', async () => {
    expect(await runTool({ program: 'no-such-program', args: [], signal, limits })).toMatchObject({ isMissing: true });
    expect(await runTool({ program: 'no-such-program', args: [], signal })).toMatchObject({ isMissing: true });
  });
});
