// Whether an image in a registry is signed as the policy wants: finds its signatures, and looks at each of them.
import type { CosignRule } from '#shared/api/bullion/verify.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';
import { withAttestations } from '#shared/golden/signature/cosign/attested.ts';
import { type Evidence, findEvidence } from '#shared/golden/signature/cosign/evidence.ts';
import { type TrustedKey, readPublicKeys, signerOf } from '#shared/golden/signature/cosign/keys.ts';
import { type Judge, judgeByIdentities } from '#shared/golden/signature/cosign/identity.ts';
import { readStatement } from '#shared/golden/signature/cosign/statement.ts';
import {
  bestOf,
  type ReadConfigMap,
  refuse,
  type SignatureRefusal,
  textsOf,
  type Verified,
} from '#shared/golden/signature/outcome.ts';

export interface SignedImage {
  readonly image: Reference;
  /** Of the version. */
  readonly digest: string;
  /** Of the index that its source named, which lists the version's for one platform. */
  readonly sourceDigest?: string | undefined;
  /** Predicate types that must be attested. Default: none. */
  readonly attestations?: readonly string[] | undefined;
}

type Registry = Pick<RegistryClient, 'manifest' | 'referrers' | 'blob'>;

/** Throws RegistryFailure and HttpFailure where it cannot be known. */
export const verifyImage = async (
  registry: Registry,
  asked: SignedImage,
  judge: Judge,
): Promise<Verified | SignatureRefusal> => {
  const signed = await verifySigned(registry, asked, judge);
  if (signed.is === 'refused') return signed;
  const { image, sourceDigest, attestations: required = [] } = asked;
  const indexOf = async (): Promise<string | undefined> =>
    sourceDigest !== undefined &&
    sourceDigest !== asked.digest &&
    (await isIn(registry, { ...image, digest: sourceDigest }, asked.digest))
      ? sourceDigest
      : undefined;
  return withAttestations(registry, signed, { image, required, indexOf }, judge);
};

/** Bytes that hash to the digest that was polled: nobody can have added an entry to them. */
const isIn = async (registry: Registry, image: Reference, digest: string): Promise<boolean> => {
  const index = await registry.manifest(image);
  return index.is === 'index' && index.entries.some((entry) => entry.digest === digest);
};

const verifySigned = async (
  registry: Registry,
  asked: SignedImage,
  judge: Judge,
): Promise<Verified | SignatureRefusal> => {
  const { image, digest, sourceDigest } = asked;
  const own = await verifyManifest(registry, image, digest, judge);
  if (own.is === 'verified' || sourceDigest === undefined || sourceDigest === digest) return own;
  if (!(await isIn(registry, { ...image, digest: sourceDigest }, digest))) return own;
  const whole = await verifyManifest(registry, image, sourceDigest, judge);
  if (whole.is === 'refused')
    return bestOf<Verified>(
      [whole, own].filter(({ reason }) => reason !== 'Unsigned'),
      own,
    );
  return { ...whole, digest, message: `${whole.message}, an index that lists ${digest}` };
};

const verifyManifest = async (
  registry: Registry,
  image: Reference,
  digest: string,
  judge: Judge,
): Promise<Verified | SignatureRefusal> => {
  const { evidence, isCut } = await findEvidence(registry, image, digest);
  const where = formatReference({ ...image, digest });
  const found: (Verified | SignatureRefusal)[] = [];
  for (const one of evidence) {
    found.push(await verifyOne(one, digest, where, judge));
  }
  const none = refuse(
    'Unsigned',
    `${where} has no signature: sign it with "cosign sign ${where}", or ask its publisher to`,
  );
  const best = bestOf(found, none);
  if (best.is === 'verified' || !isCut) return best;
  return { ...best, message: `${best.message}; there are more signatures than are read` };
};

const verifyOne = async (
  evidence: Evidence,
  digest: string,
  image: string,
  judge: Judge,
): Promise<Verified | SignatureRefusal> => {
  const where = `the signature of ${image} (${evidence.where})`;
  const read = readStatement(evidence);
  if ('problem' in read) return refuse('BadSignature', `${where} ${read.problem}`);
  const { kind, digests, signedAt } = read.value;
  const signer = await judge(read.value, where);
  if (signer.is === 'refused') return signer;
  if (!digests.includes(digest)) {
    const others = digests.slice(0, 3).join(', ').slice(0, 300);
    return refuse(
      'DigestNotSigned',
      `${where} is by ${signer.by}, but for ${others}: it was copied from another image`,
    );
  }
  const when = signer.signedAt ?? signedAt;
  const message = `${image} is signed by ${signer.by}${when === undefined ? '' : ` at ${when}`}`;
  return { is: 'verified', digest, kind, by: signer.by, signedAt: when, message };
};

export const judgeByKeys =
  (keys: readonly TrustedKey[]): Judge =>
  (statement, where) => {
    const { signed, signatures } = statement;
    const key = signatures.map((signature) => signerOf(keys, signed, signature)).find((one) => one !== undefined);
    const wanted = keys.map(({ fingerprint }) => fingerprint).join(', ');
    return Promise.resolve(
      key === undefined
        ? refuse(
            'WrongKey',
            `${where} fits none of the trusted keys (${wanted}): another key made it, or what it signs was changed`,
          )
        : { is: 'signer', by: key.fingerprint },
    );
  };

/** The judge that the policy asks for. */
export const judgeOf = async (rule: CosignRule, read: ReadConfigMap): Promise<Judge | SignatureRefusal> => {
  if (rule.keys === undefined) return judgeByIdentities(rule, read);
  const { inline, configMap } = rule.keys;
  const texts = inline ?? (await textsOf(read, configMap));
  if ('is' in texts) return texts;
  const { keys, problems } = readPublicKeys(texts);
  const where = configMap === undefined ? 'the keys in cosign.keys.inline' : `the keys of ConfigMap ${configMap}`;
  const [problem] = problems;
  if (problem !== undefined) return refuse('InvalidPolicy', `${where} ${problem}`);
  if (keys.length === 0)
    return refuse('InvalidPolicy', `${where} hold no PEM block PUBLIC KEY: put in what "cosign public-key" prints`);
  return judgeByKeys(keys);
};
