import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { complaintOf, watchStart } from '#infra/local/start-trouble.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

describe('what is said of a start that does not come to its end', () => {
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

  it('a port that is taken is named', async () => {
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

  it('a data directory that is a file is named', async () => {
    const file = join(dir, 'file');
    await writeFile(file, '');
    const error = await faultOf(() => mkdir(file, { recursive: true }));
    expect(complaintOf(error)).toContain(`${file} is not a directory: choose another --data-dir`);
  });

  it('our own words stay as they are, and a fault of the program is none of them', () => {
    expect(complaintOf(new InvalidInput('--port takes a number'))).toBe('--port takes a number');
    expect(complaintOf(new TypeError('x is not a function'))).toBeUndefined();
  });

  it('a start that takes long tells the last words of the log until it is over', async () => {
    const log = join(dir, 'cluster.log');
    const last = { message: 'source waits for its kinds', error: { message: 'no kind Thing' } };
    await writeFile(log, `{"message":"listening"}\n${JSON.stringify(last)}\n`);
    const said: string[] = [];
    const stop = watchStart(log, (text) => said.push(text), 20);
    await expect.poll(() => said.length).toBeGreaterThan(0);
    stop();
    expect(said[0]).toContain(`${log} ends with: source waits for its kinds: no kind Thing`);
  });
});
