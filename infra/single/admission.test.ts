// When the work of a leader begins: once admission answers, or nobody waits any longer.
import { describe, expect, it } from 'vitest';
import { startLater, untilAdmission } from '#infra/single/admission.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const down = new Unavailable('failed calling webhook "objects.validate.bullion.dev"');

/** Asks until one of the answers is none or no outage; returns how many were asked for. */
const ask = async (answers: readonly (Error | undefined)[], over = new AbortController()): Promise<number> => {
  const kube = createMemoryKube();
  let asked = 0;
  const create = (async () => {
    const answer = answers[asked++];
    if (asked === 10) over.abort();
    if (answer !== undefined) throw answer;
  }) as unknown as typeof kube.create;
  const times = { turnMs: 1, mostMs: 2_000 };
  const waiting = { kube: { ...kube, create }, ownCertificate: false, signal: over.signal, log: silentLogger, times };
  await untilAdmission(waiting);
  return asked;
};

describe('admission is waited for', () => {
  it.each([
    ['it answers at once', [undefined], 1],
    ['it answers later', [down, down, undefined], 3],
    ['it refuses what is asked: it is there', [down, new InvalidInput('no')], 2],
    ['the leader is stopped', Array.from({ length: 99 }, () => down), 10],
  ])('until %s', async (_what, answers, count) => {
    expect(await ask(answers)).toBe(count);
  });

  it('and then the work starts, once', async () => {
    const done: string[] = [];
    const begun = Promise.withResolvers<void>();
    const work = startLater(
      () => begun.promise,
      () => {
        done.push('start');
        return { stop: async () => void done.push('stop') };
      },
    );
    expect(done).toEqual([]);
    begun.resolve();
    await begun.promise;
    await work.stop();
    expect(done).toEqual(['start', 'stop']);
  });

  it('and never starts where the leader was stopped before', async () => {
    const work = startLater(
      (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      () => expect.unreachable(),
    );
    await work.stop();
  });
});
