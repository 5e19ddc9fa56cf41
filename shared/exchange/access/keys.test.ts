import { beforeEach, describe, expect, it } from 'vitest';
import { secrets } from '#shared/api/foreign/core.ts';
import { type KeyRing, createKeyRing } from '#shared/exchange/access/keys.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';

const day = 24 * 3600_000;

let kube: MemoryKube;
let time: number;
beforeEach(() => {
  time = Date.parse('2026-03-01T00:00:00Z');
  kube = createMemoryKube({ now: () => time });
});

/** Each instance of the function has one. */
const aRing = (): KeyRing => createKeyRing(kube, () => time);
const signingOf = async (ring: KeyRing): Promise<string> => (await ring.signing()).id;
const knownTo = async (ring: KeyRing, isFresh = false): Promise<readonly string[]> =>
  (await ring.verifying({ isFresh })).map(({ id }) => id);
const looks = (): number => kube.calls.filter(({ verb }) => verb === 'get').length;

describe('the signing keys of tokens', () => {
  it('are created at first use, one for all instances that start at once', async () => {
    const rings = [aRing(), aRing(), aRing()];
    const ids = await Promise.all(rings.map(signingOf));
    expect(new Set(ids).size).toBe(1);
    expect(kube.all(secrets)).toMatchObject([{ metadata: { namespace: 'bullion-system', name: 'transfer-keys' } }]);
  });

  it('are rotated after a day, and the previous key stays valid for another day', async () => {
    const ring = aRing();
    const first = await signingOf(ring);
    time += day - 1;
    expect(await signingOf(ring)).toBe(first);
    time += 1;
    const late = aRing();
    const second = await signingOf(late);
    expect(second).not.toBe(first);
    expect(await knownTo(late)).toEqual([second, first]);
    time += day;
    const third = await signingOf(aRing());
    expect(await knownTo(aRing())).toEqual([third, second]);
  });

  it('are read again for an unknown key ID, and requests with unknown IDs do not cause unlimited reads', async () => {
    const ring = aRing();
    const before = await knownTo(ring);
    time += day;
    const renewed = await signingOf(aRing());
    const other = aRing();
    await knownTo(other);
    const since = looks();
    expect(await knownTo(other)).toContain(renewed);
    for (const ms of [0, 1_000, 999]) {
      time += ms;
      await knownTo(other, true);
    }
    expect(looks()).toBe(since);
    time += 1;
    await knownTo(other, true);
    expect(looks()).toBe(since + 1);
    expect(await knownTo(ring, true)).toEqual([renewed, ...before]);
  });

  it('that cannot be written cause an error, and are created at the next use', async () => {
    const ring = aRing();
    kube.failNext({ verb: 'create', resource: 'secrets' }, { error: new Error('no'), when: 'before' });
    await expect(ring.signing()).rejects.toThrow('no');
    expect(await signingOf(ring)).toMatch(/./);
  });
});
