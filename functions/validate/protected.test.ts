// What must not be pulled from under an image, one row each.
import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/validate/app.ts';
import { protectedRules } from '#shared/resources/protected/rules.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Asked, type Draft, ask, clusterOf, rightOf, withAccess } from '#test/support/admission.ts';
import { exemptRows, protectedRows } from '#test/support/protected-rows.ts';

const validate = (asked: Asked, given: readonly Draft[], rights: readonly string[] = []) => {
  const kube = withAccess(clusterOf(...given), (question) => rights.includes(rightOf(question)));
  return ask(createApp({ kube, log: silentLogger }), '/validate', asked);
};

describe('protected objects', () => {
  it.each(protectedRows)('$id keeps $what', async ({ given, rights, allowed, denied, says }) => {
    expect(await validate(allowed, given, rights)).toMatchObject({ allowed: true });
    const answer = await validate(denied, given, rights);
    expect([answer.allowed, answer.status?.message]).toEqual([false, expect.stringMatching(says)]);
  });

  it.each(exemptRows)('do not include %s', async (_what, given, asked) => {
    expect(await validate(asked, given)).toMatchObject({ allowed: true });
  });

  it('have a row for each rule', () => {
    const ids = new Set(protectedRows.map(({ id }) => id));
    expect(protectedRules.filter(({ id }) => !ids.has(id))).toEqual([]);
  });
});
