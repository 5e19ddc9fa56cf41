import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CosignRule } from '#shared/api/bullion/verify.ts';
import { judgeOf } from '#shared/golden/signature/cosign/cosign.ts';
import { readStatement } from '#shared/golden/signature/cosign/statement.ts';
import { type SimpleSignature, bundleOf, ecKey, statementOf } from '#test/support/cosign.ts';
import { type Sigstore, createSigstore } from '#test/support/sigstore.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const issuer = 'https://token.example';
const subject = 'https://git.example/vendor/images/.github/workflows/release.yml@refs/heads/main';
const signer = { issuer, subject };
const configMap = 'root';

let sigstore: Sigstore;
let other: Sigstore;
beforeAll(async () => {
  [sigstore, other] = [await createSigstore(), await createSigstore()];
});

const judgeWith = (rule: CosignRule, text = sigstore.root) =>
  judgeOf(rule, () => Promise.resolve({ data: { 'trusted_root.json': text } }));
const evidenceOf = ({ payload, signature, annotations = {} }: SimpleSignature) => ({
  form: 'simple' as const,
  where: 'x',
  digest: 'x',
  bytes: payload,
  annotations: { 'dev.cosignproject.cosign/signature': signature, ...annotations },
});
const verify = async (
  signed: SimpleSignature,
  identities: NonNullable<CosignRule['identities']> = [signer],
  text?: string,
) => {
  const judge = await judgeWith({ identities, trustRoot: { configMap } }, text);
  const statement = readStatement(evidenceOf(signed));
  if ('is' in judge || 'problem' in statement) throw new Error(JSON.stringify([judge, statement]));
  return judge(statement.value, 'x');
};

describe('an identity that the authority of the trust root knew', () => {
  it('has signed, at the time that the log says', async () => {
    const signed = await sigstore.sign(digest, { ...signer, at: new Date('2024-05-01T12:00:00Z') });
    expect(await verify(signed)).toEqual({
      is: 'signer',
      by: `${subject} of ${issuer}`,
      signedAt: '2024-05-01T12:01:00.000Z',
    });
  });

  it.each([
    ['all of it', 'https://git\\.example/vendor/.*', 'signer'],
    ['its beginning alone', 'https://git\\.example/vendor', 'refused'],
    ['its end alone', 'refs/heads/main', 'refused'],
    ['one of two alternatives in part', 'https://git\\.example|x', 'refused'],
  ])('is matched by a regular expression: %s', async (_, subjectRegExp, is) => {
    expect(await verify(await sigstore.sign(digest, signer), [{ issuer, subjectRegExp }])).toMatchObject({ is });
  });

  it.each([
    ['another subject', { issuer, subject: `${subject}x` }],
    ['a part of the subject', { issuer, subject: subject.slice(0, -1) }],
    ['another issuer', { issuer: 'https://other.example', subject }],
    ['any subject of another issuer', { issuer: 'https://other.example', subjectRegExp: '.*' }],
  ])('is not taken for %s', async (_, identity) => {
    const refused = { is: 'refused', reason: 'WrongIdentity' };
    expect(await verify(await sigstore.sign(digest, signer), [identity])).toMatchObject(refused);
    expect(await verify(await sigstore.sign(digest, signer), [identity, signer])).toMatchObject({ is: 'signer' });
  });
});

describe('refused is', () => {
  const refused = { is: 'refused', reason: 'BadSignature' };

  it('who another authority knows', async () => {
    expect(await verify(await other.sign(digest, signer))).toMatchObject(refused);
  });

  it('what was signed when the certificate was not good', async () => {
    const at = new Date('2024-05-01T12:00:00Z');
    for (const loggedAt of ['2024-05-01T11:59:00Z', '2024-05-01T12:11:00Z'])
      expect(await verify(await sigstore.sign(digest, { ...signer, at, loggedAt: new Date(loggedAt) }))).toMatchObject(
        refused,
      );
  });

  it('what no log and no time stamp knows', async () => {
    expect(await verify(await sigstore.sign(digest, { ...signer, isUnlogged: true }))).toMatchObject(refused);
  });

  it('what another log promises', async () => {
    const [good, foreign] = [await sigstore.sign(digest, signer), await other.sign(digest, signer)];
    const log = { 'dev.sigstore.cosign/bundle': foreign.annotations!['dev.sigstore.cosign/bundle']! };
    expect(await verify({ ...good, annotations: { ...good.annotations, ...log } })).toMatchObject(refused);
  });

  it('a payload that was changed, and a log entry of another payload', async () => {
    const [good, second] = [
      await sigstore.sign(digest, signer),
      await sigstore.sign(digest.replaceAll('a', 'b'), signer),
    ];
    expect(await verify({ ...good, payload: second.payload })).toMatchObject(refused);
    const log = { 'dev.sigstore.cosign/bundle': second.annotations!['dev.sigstore.cosign/bundle']! };
    expect(await verify({ ...good, annotations: { ...good.annotations, ...log } })).toMatchObject(refused);
  });

  it('a signature by a key', async () => {
    const { payload, signature } = await sigstore.sign(digest, signer);
    expect(await verify({ payload, signature })).toMatchObject({ is: 'refused', reason: 'WrongKey' });
    const judge = await judgeWith({ identities: [signer], trustRoot: { configMap } });
    const bytes = Buffer.from(JSON.stringify(bundleOf(ecKey(), statementOf(digest), {})));
    const statement = readStatement({ form: 'bundle', where: 'x', digest: 'x', bytes, annotations: {} });
    if ('is' in judge || 'problem' in statement) throw new Error('no judge');
    expect(await judge(statement.value, 'x')).toMatchObject({ is: 'refused' });
  });

  it.each([
    ['no trust root', {}, ''],
    ['a trust root that is not JSON', { trustRoot: { configMap } }, 'x'],
    ['an empty trust root', { trustRoot: { configMap } }, '{}'],
  ])('a policy with %s', async (_, over, text) => {
    const judge = await judgeWith({ identities: [signer], ...over }, text);
    expect(judge).toMatchObject({ is: 'refused', reason: 'InvalidPolicy' });
  });

  it('a policy with a broken regular expression', async () => {
    const judge = await judgeWith({ identities: [{ issuer, subjectRegExp: '(' }], trustRoot: { configMap } });
    expect(judge).toMatchObject({ is: 'refused', reason: 'InvalidPolicy' });
  });

  it('whatever strangers write into annotations, and nothing is thrown for it', async () => {
    const good = await sigstore.sign(digest, signer);
    const names = Object.keys(good.annotations ?? {});
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), fc.nat(), fc.string({ maxLength: 4 }), async (name, at, text) => {
        const value = good.annotations?.[name] ?? '';
        const place = at % value.length;
        const changed = value.slice(0, place) + text + value.slice(place + 1);
        const outcome = await verify({ ...good, annotations: { ...good.annotations, [name]: changed } });
        expect(outcome.is === 'signer' ? outcome.by : `${subject} of ${issuer}`).toBe(`${subject} of ${issuer}`);
      }),
      { numRuns: 60 },
    );
  });
});
