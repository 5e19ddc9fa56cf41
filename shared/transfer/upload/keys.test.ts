import { generateKeyPairSync } from 'node:crypto';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { publicHalfOf, signToken, toKeySet, toSigningKey } from '#shared/runtime/token.ts';
import { createTokenChecker } from '#shared/transfer/upload/keys.ts';

const newKey = () =>
  toSigningKey(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
const [ours, strange] = [newKey(), newKey()];
const tokenOf = (key: typeof ours): string =>
  signToken(key, { sub: 'test', verb: 'work', target: 'uid', iat: 0, exp: 60 });

let issuer: Server;
let url = '';
let asked = 0;
let isWell = true;
beforeEach(async () => {
  [asked, isWell] = [0, true];
  issuer = createServer((_request, response) => {
    asked += 1;
    response.writeHead(isWell ? 200 : 503).end(JSON.stringify(toKeySet([publicHalfOf(ours)])));
  });
  await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/keys`;
});
afterEach(() => void issuer.close());

it('accepts concurrent requests with one read of the keys', async () => {
  const checker = createTokenChecker(url, () => 0);
  const verdicts = await Promise.all([1, 2, 3, 4].map(() => checker.check(tokenOf(ours))));
  expect([asked, ...verdicts.map(({ is }) => is)]).toEqual([1, 'good', 'good', 'good', 'good']);
});

it('reads again at once when a read has failed', async () => {
  const checker = createTokenChecker(url, () => 0);
  isWell = false;
  await expect(checker.check(tokenOf(ours))).rejects.toThrow('answered 503');
  isWell = true;
  expect((await checker.check(tokenOf(ours))).is).toBe('good');
});

it('does not read for every request with an unknown key', async () => {
  let now = 0;
  const checker = createTokenChecker(url, () => now);
  for (now of [0, 1_000, 4_999, 5_000]) expect((await checker.check(tokenOf(strange))).is).toBe('unknown-key');
  expect(asked).toBe(2);
});
