// Clients that take each other's place while one of them is at its end.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Taken, createReceiver } from '#shared/transfer/upload/receiver.ts';
import { type Spool, openSpool } from '#shared/transfer/upload/spool.ts';

let directory: string;
let spool: Spool;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bullion-receiver-'));
  spool = await openSpool(directory);
});
afterEach(async () => {
  await spool.close();
  await rm(directory, { recursive: true, force: true });
});

const announced = (length: number) => ({ id: 'a', length });
const whole = (bytes: Buffer) => ({
  begins: announced(bytes.length),
  offset: 0,
  isLast: true,
  takesOver: true,
  body: Readable.from([bytes]),
});
/** Never ends, as one whose connection is dead. */
const silent = () => new Readable({ read: () => undefined });

describe('clients that take over', () => {
  it('do not delete a file that was completed while they waited', async () => {
    const bytes = Buffer.from('all of it');
    let second: Promise<Taken> | undefined;
    const receiver = createReceiver({
      ...spool,
      complete: async () => {
        second = receiver.take(whole(bytes));
        await spool.complete();
      },
    });
    expect((await receiver.take(whole(bytes))).is).toBe('taken');
    expect((await second)?.is).toBe('closed');
    expect([spool.isComplete(), spool.offset()]).toEqual([true, bytes.length]);
  });

  it('are replaced by the next one while they still wait', async () => {
    const receiver = createReceiver(spool);
    const bytes = Buffer.from('all of it');
    const first = receiver.take({ ...whole(bytes), isLast: false, body: silent() });
    const second = receiver.take({ ...whole(bytes), body: silent() });
    const third = receiver.take(whole(bytes));
    expect((await Promise.all([first, second, third])).map(({ is }) => is)).toEqual([
      'interrupted',
      'interrupted',
      'taken',
    ]);
  });
});

describe('clients that do not take over', () => {
  const bytes = Buffer.from('all of it');

  it('wait for one whose connection is about to end', async () => {
    const receiver = createReceiver(spool);
    const left = silent();
    const first = receiver.take({ ...whole(bytes), body: left });
    const second = receiver.take({ ...whole(bytes), takesOver: false });
    left.destroy();
    expect([(await first).is, (await second).is]).toEqual(['interrupted', 'taken']);
  });

  it('are rejected while another one is sending', async () => {
    const receiver = createReceiver(spool);
    const left = silent();
    const first = receiver.take({ ...whole(bytes), body: left });
    expect((await receiver.take({ ...whole(bytes), takesOver: false })).is).toBe('busy');
    left.destroy();
    await first;
  });
});
