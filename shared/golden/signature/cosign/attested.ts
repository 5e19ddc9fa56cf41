// What the signers of a policy attest of an image beside having signed it: provenance, bills of materials. Recorded, and asked for where the policy does.
import type { Attestation } from '#shared/api/bullion/verify.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { type Evidence, findAttestations } from '#shared/golden/signature/cosign/evidence.ts';
import type { Judge } from '#shared/golden/signature/cosign/identity.ts';
import { isApproval, readAttested } from '#shared/golden/signature/cosign/statement.ts';
import { type SignatureRefusal, type Verified, refuse } from '#shared/golden/signature/outcome.ts';

type Registry = Pick<RegistryClient, 'manifest' | 'referrers' | 'blob'>;

interface Asked {
  readonly image: Reference;
  readonly required: readonly string[];
  /** Digest of the index that lists the version: statements about it hold for the version. */
  readonly indexOf: () => Promise<string | undefined>;
}

interface Judged {
  readonly good: readonly Attestation[];
  /** Why others do not count, for messages. */
  readonly others: readonly string[];
}

const shownTypes = 200;

const judgeEvidence = async (
  evidence: Evidence,
  digest: string,
  judge: Judge,
): Promise<Attestation | string | undefined> => {
  const read = readAttested(evidence);
  if ('problem' in read) return `${evidence.where} ${read.problem}`;
  if (isApproval(read.value)) return undefined;
  const { digests } = read.value;
  const predicateType = read.value.predicateType.slice(0, shownTypes);
  const signer = await judge(read.value, `the attestation ${predicateType} (${evidence.where})`);
  if (signer.is === 'refused') return signer.message;
  if (!digests.includes(digest))
    return `the attestation ${predicateType} (${evidence.where}) is by ${signer.by}, but of another image`;
  const { by, signedAt } = signer;
  return { predicateType, digest: evidence.digest, by, ...(signedAt === undefined ? {} : { signedAt }) };
};

const judgeAll = async (registry: Registry, image: Reference, digest: string, judge: Judge): Promise<Judged> => {
  const { evidence, isCut } = await findAttestations(registry, image, digest);
  const good: Attestation[] = [];
  const others = isCut ? ['there are more, or larger ones, than are looked at'] : [];
  for (const one of evidence) {
    const found = await judgeEvidence(one, digest, judge);
    if (typeof found === 'string') others.push(found);
    else if (found !== undefined) good.push(found);
  }
  return { good, others };
};

const missingIn = ({ good }: Judged, { required }: Asked): readonly string[] =>
  required.filter((type) => !good.some(({ predicateType }) => predicateType === type));

/** The index is asked only where something is missing. */
const findAttested = async (registry: Registry, digest: string, asked: Asked, judge: Judge): Promise<Judged> => {
  const { image, indexOf } = asked;
  const own = await judgeAll(registry, image, digest, judge);
  const index = missingIn(own, asked).length === 0 ? undefined : await indexOf();
  if (index === undefined) return own;
  const { good, others } = await judgeAll(registry, image, index, judge);
  return { good: [...own.good, ...good], others: [...own.others, ...others] };
};

/** A signed image with its attestations, or the refusal of one that lacks what the policy asks for. */
export const withAttestations = async (
  registry: Registry,
  verified: Verified,
  asked: Asked,
  judge: Judge,
): Promise<Verified | SignatureRefusal> => {
  const { required, image } = asked;
  let looked: Judged = { good: [], others: [] };
  try {
    looked = await findAttested(registry, verified.digest, asked, judge);
  } catch (error) {
    // What nobody asks for does not hold a version up.
    if (required.length > 0 || !(error instanceof RegistryFailure)) throw error;
  }
  const { good, others } = looked;
  const missing = missingIn(looked, asked);
  if (missing.length > 0) {
    const found = [...new Set(good.map(({ predicateType }) => predicateType))].join(', ') || 'none';
    const why = others[0] === undefined ? '' : `; ${others[0]}`;
    return refuse(
      'AttestationMissing',
      `${formatReference({ ...image, digest: verified.digest })} is signed by ${verified.by}, but nobody whom the policy trusts attests ${missing.join(', ')} (attested: ${found})${why}: attach it with "cosign attest", or take it out of attestations`,
    );
  }
  return good.length === 0 ? verified : { ...verified, attestations: good };
};
