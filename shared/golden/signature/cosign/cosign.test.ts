import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { createRegistryClient } from '#shared/clients/registry/client.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { judgeByKeys, judgeOf, verifyImage } from '#shared/golden/signature/cosign/cosign.ts';
import { readPublicKeys } from '#shared/golden/signature/cosign/keys.ts';
import { readAttested, readStatement } from '#shared/golden/signature/cosign/statement.ts';
import {
  type KeyPair,
  bundleOf,
  ecKey,
  envelopeOf,
  payloadOf,
  pemOf,
  pushAttestations,
  pushBundles,
  pushSignatures,
  signBytes,
  statementOf,
} from '#test/support/cosign.ts';
import { hasCosign, startCosign } from '#test/support/cosign-program.ts';
import { type PushTarget, pushDisk, pushIndex } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const vendor = ecKey();
const stranger = ecKey();
const trusted = (...pairs: readonly KeyPair[]) => judgeByKeys(readPublicKeys(pairs.map(pemOf)).keys);

const simple = (digest: string, pair: KeyPair = vendor, hash = 'sha256', over: object = {}) => {
  const payload = payloadOf(digest, over);
  return { payload, signature: signBytes(pair, payload, hash) };
};

describe.skipIf(!hasRegistry())('signatures in a registry', () => {
  let registry: TestRegistry;
  let target: PushTarget;
  let http: HttpClient;
  beforeAll(async () => {
    registry = await startRegistry();
    target = { host: registry.host, repository: 'disks/signed' };
    http = createHttpClient({ isRefused: createAddressPolicy(['127.0.0.0/8']), idleMs: 10_000 });
  });
  afterAll(async () => {
    await http.close();
    await registry.close();
  });

  let disks = 0;
  const pushed = async () => (await pushDisk(target, Buffer.alloc(512, `${++disks}`), `tag-${disks}`)).digest;
  const client = () =>
    createRegistryClient({ http, host: registry.host, plainHttp: true, pace: createRegistryPace(Date.now) });
  const verify = (digest: string, judge = trusted(vendor), sourceDigest?: string) =>
    verifyImage(client(), { image: target, digest, sourceDigest }, judge);

  it.each([
    ['ECDSA P-256', ecKey('P-256'), 'sha256'],
    ['ECDSA P-384', ecKey('P-384'), 'sha256'],
    ['ECDSA P-384 with its own hash', ecKey('P-384'), 'sha384'],
    ['ECDSA P-521', ecKey('P-521'), 'sha512'],
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 3072 }), 'sha256'],
    ['Ed25519', generateKeyPairSync('ed25519'), 'sha256'],
  ])('by %s, of the policy, are good', async (_, pair, hash) => {
    const digest = await pushed();
    await pushSignatures(target, digest, [simple(digest, pair, hash)]);
    const [key] = readPublicKeys([pemOf(pair)]).keys;
    expect(await verify(digest, trusted(pair))).toMatchObject({
      is: 'verified',
      digest,
      kind: 'cosign',
      by: key?.fingerprint,
      signedAt: '2023-11-14T22:13:20.000Z',
    });
  });

  it('in bundles that refer to the image are good as well', async () => {
    const digest = await pushed();
    await pushBundles(target, digest, [bundleOf(vendor, statementOf(digest))]);
    expect(await verify(digest)).toMatchObject({ is: 'verified', digest, kind: 'sigstore-bundle' });
    expect(await verify(digest, trusted(stranger))).toMatchObject({ is: 'refused', reason: 'WrongKey' });
  });

  it('by bundles count also where the list does not name their type, as cosign writes it', async () => {
    const digest = await pushed();
    await pushBundles(target, digest, [bundleOf(vendor, statementOf(digest))], 'application/vnd.oci.empty.v1+json');
    expect(await verify(digest)).toMatchObject({ is: 'verified' });
  });

  it('that do not exist', async () => {
    const digest = await pushed();
    expect(await verify(digest)).toMatchObject({ is: 'refused', reason: 'Unsigned' });
  });

  it('by another key, and changed after signing', async () => {
    const digest = await pushed();
    await pushSignatures(target, digest, [simple(digest, stranger)]);
    expect(await verify(digest)).toMatchObject({ is: 'refused', reason: 'WrongKey' });
    await pushSignatures(target, digest, [{ ...simple(digest), payload: payloadOf(digest, { identity: {} }) }]);
    expect(await verify(digest)).toMatchObject({ is: 'refused', reason: 'WrongKey' });
  });

  it('of another image, copied beside this one', async () => {
    const [digest, other] = [await pushed(), await pushed()];
    await pushSignatures(target, digest, [simple(other)]);
    expect(await verify(digest)).toMatchObject({ is: 'refused', reason: 'DigestNotSigned' });
    await pushBundles(target, digest, [bundleOf(vendor, statementOf(other))]);
    expect(await verify(digest)).toMatchObject({ is: 'refused', reason: 'DigestNotSigned' });
  });

  it('of something else than the image: an attestation, a payload of another type', async () => {
    const digest = await pushed();
    await pushBundles(target, digest, [bundleOf(vendor, statementOf(digest, 'https://slsa.dev/provenance/v1'))]);
    expect(await verify(digest)).toMatchObject({
      is: 'refused',
      reason: 'BadSignature',
      message: expect.stringMatching(/attestation/),
    });
    await pushSignatures(target, digest, [simple(digest, vendor, 'sha256', { type: 'atomic container signature' })]);
    expect(await verify(digest)).toMatchObject({ is: 'refused', reason: 'BadSignature' });
  });

  it('one good one among bad ones counts, and without it the nearest refusal is reported', async () => {
    const [digest, other] = [await pushed(), await pushed()];
    const bad = [simple(digest, stranger), simple(other), { ...simple(digest), signature: '%%%' }];
    await pushSignatures(target, digest, [...bad, simple(digest)]);
    expect(await verify(digest)).toMatchObject({ is: 'verified' });
    await pushSignatures(target, digest, bad);
    expect(await verify(digest)).toMatchObject({
      reason: 'DigestNotSigned',
      message: expect.stringMatching(/one of 3 signatures/),
    });
  });

  it('are looked at up to a number', async () => {
    const digest = await pushed();
    const many = Array.from({ length: 40 }, (_, index) => simple(digest, stranger, 'sha256', { index }));
    await pushSignatures(target, digest, [...many, simple(digest)]);
    registry.requests.length = 0;
    expect(await verify(digest)).toMatchObject({
      reason: 'WrongKey',
      message: expect.stringMatching(/more signatures than are read/),
    });
    expect(registry.requests.length).toBeLessThan(40);
  });

  it('of an index are good for the images that it lists, and for no others', async () => {
    const images = [];
    for (const architecture of ['amd64', 'arm64']) {
      const image = await pushDisk(target, Buffer.alloc(512, architecture), `index-${architecture}`);
      images.push({ architecture, image });
    }
    const index = await pushIndex(target, images, 'index');
    await pushSignatures(target, index.digest, [simple(index.digest)]);
    const digest = images[0]!.image.digest;
    expect(await verify(digest)).toMatchObject({ reason: 'Unsigned' });
    expect(await verify(digest, trusted(vendor), index.digest)).toMatchObject({ is: 'verified', digest });
    expect(await verify(digest, trusted(stranger), index.digest)).toMatchObject({ reason: 'WrongKey' });
    expect(await verify(await pushed(), trusted(vendor), index.digest)).toMatchObject({ reason: 'Unsigned' });
  });

  it('of an index whose bytes are others than its digest says decide nothing', async () => {
    const [digest, listed] = [await pushed(), await pushDisk(target, Buffer.alloc(512, 99), 'forged')];
    const real = await pushIndex(target, [{ architecture: 'amd64', image: listed }], 'real');
    await pushSignatures(target, real.digest, [simple(real.digest)]);
    const forged = JSON.stringify({ schemaVersion: 2, manifests: [{ mediaType: 'application/x', digest, size: 1 }] });
    registry.intercept = ({ path }, response) => {
      if (!path.endsWith(`/manifests/${real.digest}`)) return false;
      response.end(forged);
      return true;
    };
    await expect(verify(digest, trusted(vendor), real.digest)).rejects.toMatchObject({ code: 'DigestMismatch' });
    registry.intercept = undefined;
  });

  it('of the digest that was polled: what the tag means meanwhile is of no account', async () => {
    const digest = await pushed();
    await pushSignatures(target, digest, [simple(digest)]);
    const { digest: swapped } = await pushDisk(target, Buffer.alloc(512, 77), `tag-${disks}`);
    expect(await verify(digest)).toMatchObject({ is: 'verified', digest });
    expect(await verify(swapped)).toMatchObject({ is: 'refused', reason: 'Unsigned' });
  });

  it('are not absent where the registry does not answer', async () => {
    const digest = await pushed();
    await pushSignatures(target, digest, [simple(digest)]);
    for (const status of [401, 429, 500, 503]) {
      registry.intercept = (_, response) => {
        response.writeHead(status).end();
        return true;
      };
      await expect(verify(digest)).rejects.toMatchObject({ name: 'RegistryFailure' });
    }
    registry.intercept = undefined;
  });
});

describe.skipIf(!hasRegistry())('attestations in a registry', () => {
  let registry: TestRegistry;
  let target: PushTarget;
  let http: HttpClient;
  beforeAll(async () => {
    registry = await startRegistry();
    target = { host: registry.host, repository: 'disks/attested' };
    http = createHttpClient({ isRefused: createAddressPolicy(['127.0.0.0/8']), idleMs: 10_000 });
  });
  afterAll(async () => {
    await http.close();
    await registry.close();
  });

  const provenance = 'https://slsa.dev/provenance/v1';
  const bill = 'https://spdx.dev/Document';
  let disks = 0;
  const signed = async () => {
    const { digest } = await pushDisk(target, Buffer.alloc(512, `${++disks}`), `tag-${disks}`);
    await pushSignatures(target, digest, [simple(digest)]);
    return digest;
  };
  const verify = (digest: string, attestations?: readonly string[], sourceDigest?: string) =>
    verifyImage(
      createRegistryClient({ http, host: registry.host, plainHttp: true, pace: createRegistryPace(Date.now) }),
      { image: target, digest, attestations, sourceDigest },
      trusted(vendor),
    );
  const missing = (message: RegExp) => ({
    is: 'refused',
    reason: 'AttestationMissing',
    message: expect.stringMatching(message) as string,
  });

  it('are recorded, by tag and as what refers to the image, and hold nothing up', async () => {
    const digest = await signed();
    expect(await verify(digest)).not.toHaveProperty('attestations');
    await pushAttestations(target, digest, [envelopeOf(vendor, statementOf(digest, provenance))]);
    await pushBundles(target, digest, [bundleOf(vendor, statementOf(digest, bill))]);
    const [key] = readPublicKeys([pemOf(vendor)]).keys;
    const sha256 = expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string;
    expect(await verify(digest, [bill, provenance])).toMatchObject({
      is: 'verified',
      attestations: [
        { predicateType: provenance, digest: sha256, by: key?.fingerprint },
        { predicateType: bill, digest: sha256, by: key?.fingerprint },
      ],
    });
  });

  it.each<[what: string, push: (digest: string) => Promise<void>, message: RegExp]>([
    [
      'there is none',
      async () => undefined,
      /nobody whom the policy trusts attests https:\/\/slsa.* \(attested: none\)/,
    ],
    [
      'it is of another type',
      (digest) => pushAttestations(target, digest, [envelopeOf(vendor, statementOf(digest, bill))]),
      /attested: https:\/\/spdx\.dev\/Document/,
    ],
    [
      'another key made it',
      (digest) => pushAttestations(target, digest, [envelopeOf(stranger, statementOf(digest, provenance))]),
      /fits none of the trusted keys/,
    ],
    [
      'it is of another image',
      (digest) =>
        pushAttestations(target, digest, [envelopeOf(vendor, statementOf(`sha256:${'0'.repeat(64)}`, provenance))]),
      /but of another image/,
    ],
    [
      'it was changed after it was signed',
      (digest) => {
        const good = envelopeOf(vendor, statementOf(digest, provenance));
        const payload = Buffer.from(JSON.stringify({ ...statementOf(digest, provenance), predicate: { x: 1 } }));
        return pushAttestations(target, digest, [{ ...good, payload: payload.toString('base64') }]);
      },
      /fits none of the trusted keys/,
    ],
    ['it is none', (digest) => pushAttestations(target, digest, [{ hello: 1 }]), /is not an envelope/],
    [
      'it is larger than any',
      (digest) => {
        const statement = { ...statementOf(digest, provenance), predicate: 'x'.repeat(4 * 2 ** 20) };
        return pushAttestations(target, digest, [envelopeOf(vendor, statement)]);
      },
      /more, or larger ones, than are looked at/,
    ],
  ])('refuse an image of which they are asked for: %s', async (_, push, message) => {
    const digest = await signed();
    await push(digest);
    expect(await verify(digest, [provenance])).toMatchObject(missing(message));
    expect(await verify(digest)).toMatchObject({ is: 'verified' });
  });

  it('of an index count for the image that it lists, and for no other', async () => {
    const image = await pushDisk(target, Buffer.alloc(512, 'listed'), 'listed');
    const { digest } = image;
    await pushSignatures(target, digest, [simple(digest)]);
    const other = await signed();
    const index = await pushIndex(target, [{ architecture: 'amd64', image }], 'index');
    await pushAttestations(target, index.digest, [envelopeOf(vendor, statementOf(index.digest, provenance))]);
    expect(await verify(digest, [provenance], index.digest)).toMatchObject({ is: 'verified' });
    expect(await verify(other, [provenance], index.digest)).toMatchObject(missing(/attested: none/));
  });
});

describe.skipIf(!hasRegistry() || !hasCosign())('the real cosign', () => {
  const program = hasCosign() ? startCosign() : undefined;
  let registry: TestRegistry;
  let http: HttpClient;
  beforeAll(async () => {
    registry = await startRegistry();
    http = createHttpClient({ isRefused: () => false, idleMs: 10_000 });
  });
  afterAll(async () => {
    program?.close();
    await http.close();
    await registry.close();
  });

  it.each([
    ['beside the image', []],
    ['as a bundle that refers to it', ['--new-bundle-format=true']],
  ])('signs and attests, %s', async (what, extra) => {
    const { sign, attest, publicKey } = program!;
    const target = { host: registry.direct, repository: 'disks/signed' };
    const [digest, other] = await Promise.all(
      ['1', '2'].map(async (tag) => (await pushDisk(target, Buffer.from(`${what} ${tag}`.padEnd(512)), tag)).digest),
    );
    const keys = readPublicKeys([publicKey]).keys;
    const image = `${target.host}/${target.repository}@${digest}`;
    const pace = createRegistryPace(Date.now);
    const client = createRegistryClient({ http, host: target.host, plainHttp: true, pace });
    const verify = (wanted: string, judge = judgeByKeys(keys), attestations?: readonly string[]) =>
      verifyImage(client, { image: target, digest: wanted, ...(attestations && { attestations }) }, judge);
    expect(await verify(digest!)).toMatchObject({ is: 'refused', reason: 'Unsigned' });
    sign(image, ...extra);
    expect(await verify(digest!)).toMatchObject({ is: 'verified', digest, by: keys[0]?.fingerprint });
    expect(await verify(digest!, trusted(stranger))).toMatchObject({ is: 'refused', reason: 'WrongKey' });
    expect(await verify(other!)).toMatchObject({ is: 'refused', reason: 'Unsigned' });
    const asked = ['https://slsa.dev/provenance/v1', 'https://spdx.dev/Document', 'https://cyclonedx.org/bom'];
    expect(await verify(digest!, judgeByKeys(keys), asked)).toMatchObject({ reason: 'AttestationMissing' });
    for (const type of ['slsaprovenance1', 'spdxjson', 'cyclonedx'] as const) attest(image, type, ...extra);
    const verified = await verify(digest!, judgeByKeys(keys), asked);
    expect(verified).toMatchObject({ is: 'verified' });
    const attested = 'attestations' in verified ? (verified.attestations ?? []) : [];
    expect(attested.map(({ predicateType }) => predicateType).toSorted()).toEqual(asked.toSorted());
    expect(new Set(attested.map(({ by }) => by))).toEqual(new Set([keys[0]?.fingerprint]));
  });

  it('signs the index that lists the image', async () => {
    const { sign, publicKey } = program!;
    const target = { host: registry.direct, repository: 'disks/indexed' };
    const image = await pushDisk(target, Buffer.alloc(512, 'indexed'), 'one');
    const index = await pushIndex(target, [{ architecture: 'amd64', image }], 'index');
    sign(`${target.host}/${target.repository}@${index.digest}`);
    const pace = createRegistryPace(Date.now);
    const client = createRegistryClient({ http, host: target.host, plainHttp: true, pace });
    const asked = { image: target, digest: image.digest, sourceDigest: index.digest };
    const judge = judgeByKeys(readPublicKeys([publicKey]).keys);
    expect(await verifyImage(client, asked, judge)).toMatchObject({ is: 'verified' });
  });
});

describe('the keys of a policy', () => {
  const read = (data: Record<string, string> | undefined) => () => Promise.resolve(data && { data });
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const secret = vendor.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

  it('may lie in several entries, and several in one', async () => {
    const data = { a: pemOf(vendor), b: `first ${pemOf(stranger)}\n${pemOf(ecKey('P-384'))}` };
    expect(typeof (await judgeOf({ keys: { configMap: 'keys' } }, read(data)))).toBe('function');
    expect(readPublicKeys(Object.values(data)).keys).toHaveLength(3);
  });

  it.each([
    ['no ConfigMap', undefined, /ConfigMap keys does not exist/],
    ['no key', { a: 'hello' }, /hold no PEM block PUBLIC KEY/],
    ['a private key', { a: secret }, /hold a private key/],
    ['a weak key', { a: pemOf(weak) }, /hold a key of type rsa, size or curve/],
    ['another curve', { a: pemOf(ecKey('secp256k1')) }, /not accepted/],
    ['no PEM', { a: '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----' }, /cannot be read/],
  ])('are refused: %s', async (_, data, message) => {
    const judge = await judgeOf({ keys: { configMap: 'keys' } }, read(data));
    expect(judge).toMatchObject({ is: 'refused', reason: 'InvalidPolicy', message: expect.stringMatching(message) });
    expect(JSON.stringify(judge)).not.toContain('MII');
  });
});

describe('bytes of strangers', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const documents = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((text) => Buffer.from(text)),
    fc.constantFrom(
      payloadOf(digest),
      Buffer.from(JSON.stringify(bundleOf(vendor, statementOf(digest)))),
      Buffer.from(JSON.stringify(envelopeOf(vendor, statementOf(digest)))),
    ),
  );

  it('are never a statement that its signer did not sign, and nothing is thrown for them', async () => {
    const judge = trusted(vendor);
    await fc.assert(
      fc.asyncProperty(
        documents,
        fc.constantFrom('simple' as const, 'bundle' as const, 'envelope' as const),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        fc.string(),
        async (bytes, form, at, flip, signature) => {
          const changed = Buffer.from(bytes);
          if (changed.length > 0) changed[at % changed.length]! ^= flip;
          const annotations = { 'dev.cosignproject.cosign/signature': signature };
          const read = form === 'envelope' ? readAttested : readStatement;
          const statement = read({ form, where: 'x', digest: 'x', bytes: changed, annotations });
          const signer = 'problem' in statement ? undefined : await judge(statement.value, 'x');
          // Of a bundle, only what is signed counts: the rest of its text may differ.
          const digests = 'problem' in statement || signer?.is !== 'signer' ? [digest] : statement.value.digests;
          expect(digests).toEqual([digest]);
        },
      ),
    );
  });
});
