// What looks at other objects: how images are made, and what must not be pulled from under them. One row each.
import { describe, expect, it } from 'vitest';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp } from '#functions/validate/app.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Asked, type Draft, ask, clusterOf, patched, rightOf, withAccess } from '#test/support/admission.ts';
import { imageRows } from '#test/support/image-rows.ts';
import { exemptRows } from '#test/support/exempt-rows.ts';
import { protectedRows } from '#test/support/protected-rows.ts';

/** As the API server asks: validation sees what mutation made of it. */
const validate = async (asked: Asked, given: readonly Draft[], rights?: readonly string[]) => {
  const kube = withAccess(clusterOf(...given), (question) => rights?.includes(rightOf(question)) ?? true);
  const deps = { kube, log: silentLogger };
  const { object } = asked;
  if (object === undefined) return ask(createApp(deps), '/validate', asked);
  const filled = patched(object, await ask(createMutate(deps), '/mutate', asked));
  return ask(createApp(deps), '/validate', { ...asked, object: filled });
};

describe('protected objects', () => {
  it.each([...imageRows, ...protectedRows])('$id keeps $what', async ({ given, rights, allowed, denied, says }) => {
    expect(await validate(allowed, given, rights)).toMatchObject({ allowed: true });
    const answer = await validate(denied, given, rights);
    expect([answer.allowed, answer.status?.message]).toEqual([false, expect.stringMatching(says)]);
  });

  it.each(exemptRows)('do not include $what ($ids)', async ({ given, rights = [], asked }) => {
    expect(await validate(asked, given, rights)).toMatchObject({ allowed: true });
  });
});
