// Sources that must be signed: at the door they must say which bytes they are, and before anything is made for them their signature is verified. The
// transfer compares the bytes with the same digest.
import type { TenantLimit } from '#shared/api/bullion/tenant-limit.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { objectUrl } from '#shared/clients/http/mirrors.ts';
import { readReference } from '#shared/clients/registry/reference.ts';
import type { VerifySignature } from '#shared/golden/signature/outcome.ts';
import type { CronSource } from '#shared/golden/source.ts';
import type { Source } from '#shared/populate/source.ts';
import type { Checksum } from '#shared/transfer/spec.ts';
import { type WrittenSource, signaturesOf, writtenSources } from './places.ts';

/** A source as signatures are looked up for it. */
export interface Signable {
  readonly written: WrittenSource;
  readonly source: CronSource;
  /** `undefined`: it does not say which bytes it is. */
  readonly digest: string | undefined;
}

const strong: readonly string[] = ['sha256', 'sha512'];

const digestOf = (checksum: Checksum | undefined): string | undefined =>
  checksum !== undefined && strong.includes(checksum.algorithm) ? `${checksum.algorithm}:${checksum.hex}` : undefined;

const cronSourceOf = (source: Source): CronSource | undefined => {
  switch (source.type) {
    case 'registry': {
      const read = readReference(source.url);
      if ('problem' in read) return undefined;
      const { secretName, bundleName: caName, architecture } = source;
      return { type: 'registry', image: read.value, secretName, caName, architecture };
    }
    case 'http':
      return { type: 'http', url: source.url, secretName: source.secretName, caName: source.bundleName };
    case 's3':
      if (!URL.canParse(source.endpoint)) return undefined;
      return { type: 's3', url: objectUrl(source).href, secretName: source.secretName, caName: source.bundleName };
    default:
      return undefined;
  }
};

/** `undefined`: nothing is fetched, or it is refused for what it is. */
export const signableOf = (from: Source | undefined, checksum: Checksum | undefined): Signable | undefined => {
  const source = from && cronSourceOf(from);
  const [written] = writtenSources(from);
  if (source === undefined || written === undefined) return undefined;
  const digest = source.type === 'registry' ? source.image.digest : digestOf(checksum);
  return { written, source, digest };
};

const askedBy = (limit: string, { shown }: WrittenSource): string =>
  `TenantLimit ${limit} asks for a signature on ${shown}`;

/** Why a source that must be signed cannot be compared with a signature; empty: it can, or need not. */
export const unpinnedRefusals = (limits: readonly TenantLimit[], signable: Signable | undefined): readonly string[] => {
  if (signable === undefined || signable.digest !== undefined) return [];
  const { written, source } = signable;
  const how =
    source.type === 'registry'
      ? 'for its digest: write it into the URL (…@sha256:…)'
      : 'for the checksum of the file: write it into the object (sha256 or sha512)';
  return signaturesOf(limits, written).map(({ limit: { metadata, spec } }) =>
    [`${askedBy(metadata.name, written)}, and therefore ${how}`, spec.sources?.message ?? spec.message ?? []]
      .flat()
      .join(': '),
  );
};

interface Verifying {
  readonly limits: readonly TenantLimit[];
  readonly namespace: string;
  readonly signable?: Signable | undefined;
  /** The digest that the source of the cron had, where that is an index that lists the digest of the version. */
  readonly sourceDigest: () => Promise<string | undefined>;
  readonly verify: VerifySignature | undefined;
}

/** Why the signature is not good, or not known yet; empty: it is good, or none is needed. */
export const signatureRefusals = async (verifying: Verifying): Promise<readonly string[]> => {
  const { limits, namespace, signable, sourceDigest, verify } = verifying;
  if (signable === undefined) return [];
  const { written, source, digest } = signable;
  const refusals: string[] = [...unpinnedRefusals(limits, signable)];
  if (digest === undefined) return refusals;
  for (const { limit, signature } of signaturesOf(limits, written)) {
    const { metadata } = limit;
    if (verify === undefined) {
      refusals.push(`the signature that TenantLimit ${metadata.name} asks for is verified within a minute`);
      continue;
    }
    const asked = { source, namespace, keysNamespace: systemNamespace, rule: signature, digest };
    const indexDigest = source.type === 'registry' ? await sourceDigest() : undefined;
    const outcome = await verify({ ...asked, sourceDigest: indexDigest });
    if (outcome.is !== 'verified') refusals.push(`${askedBy(metadata.name, written)}: ${outcome.message}`);
  }
  return refusals;
};
