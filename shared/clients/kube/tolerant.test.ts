import { describe, expect, it } from 'vitest';
import { isChangedMeanwhile, retryConflicts, tolerate } from '#shared/clients/kube/tolerant.ts';
import { Conflict, NotFound, Unavailable, isConflict } from '#shared/runtime/errors.ts';

describe('expected failures', () => {
  it.each([
    [new Conflict('changed'), undefined],
    [new NotFound('gone'), undefined],
    [new Unavailable('down'), 'down'],
  ])('%s', async (error, expected) => {
    const work = tolerate<string>(Promise.reject(error), isChangedMeanwhile);
    expect(await work.catch(({ message }: Error) => message)).toBe(expected);
  });

  it.each([
    [2, 3, 'read 3'],
    [3, 3, 'conflict 3'],
  ])('after %i conflicts, of %i rounds: %s', async (conflicts, rounds, expected) => {
    const work = async (round: number): Promise<string> => {
      if (round <= conflicts) throw new Conflict(`conflict ${round}`);
      return `read ${round}`;
    };
    const result = await retryConflicts(rounds, work).catch((error: Error) => error.message);
    expect(result).toBe(expected);
  });

  it('other errors end it at once', async () => {
    let rounds = 0;
    const work = async (round: number) => {
      rounds = round;
      throw new NotFound('gone');
    };
    await expect(retryConflicts(5, work, isConflict)).rejects.toThrow('gone');
    expect(rounds).toBe(1);
  });
});
