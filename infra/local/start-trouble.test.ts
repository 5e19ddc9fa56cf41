import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { complaintOf, watchStart } from '#infra/local/start-trouble.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

describe('the report of a start that fails', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-trouble-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const faultOf = async (doing: () => Promise<unknown>): Promise<unknown> => {
    try {
      await doing();
    } catch (error) {
      return error;
    }
    throw new Error('nothing went wrong');
  };

  it('names a port that is in use', async () => {
    await using first = createServer().listen(0, '127.0.0.1');
    await new Promise((done) => first.once('listening', done));
    const { port } = first.address() as { port: number };
    const error = await faultOf(
      () =>
        new Promise((_, reject) => {
          createServer().once('error', reject).listen(port, '127.0.0.1');
        }),
    );
    expect(complaintOf(error)).toContain(`port ${port} of this machine: end it, or choose another --port`);
  });

  it('names a data directory that is a file', async () => {
    const file = join(dir, 'file');
    await writeFile(file, '');
    const error = await faultOf(() => mkdir(file, { recursive: true }));
    expect(complaintOf(error)).toContain(`${file} is not a directory: choose another --data-dir`);
  });

  it('keeps expected messages as they are, and does not mistake a program error for one', () => {
    expect(complaintOf(new InvalidInput('--port takes a number'))).toBe('--port takes a number');
    expect(complaintOf(new TypeError('x is not a function'))).toBeUndefined();
  });

  it('shows the last lines of the log while a start takes long', async () => {
    const log = join(dir, 'cluster.log');
    const last = { message: 'source is waiting for its kinds', error: { message: 'no kind Thing' } };
    await writeFile(log, `{"message":"listening"}\n${JSON.stringify(last)}\n`);
    const said: string[] = [];
    const stop = watchStart(log, (text) => said.push(text), 20);
    await expect.poll(() => said.length).toBeGreaterThan(0);
    stop();
    expect(said[0]).toContain(`${log} ends with: source is waiting for its kinds: no kind Thing`);
  });
});
