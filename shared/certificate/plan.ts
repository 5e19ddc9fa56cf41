// Decides when the webhook certificate is renewed. Pure except for the new keys: the result depends on the existing certificates and the clock.
import { X509Certificate } from 'node:crypto';
import { type Pair, type Validity, createAuthority, issueServer } from '#shared/certificate/issue.ts';

const day = 24 * 3600 * 1000;
/** Validity in milliseconds. A certificate is replaced when a third of it is left, so that an outage of a month is harmless. */
const lives = { authority: 3650 * day, server: 90 * day } as const;
/** Allowed clock skew within the cluster. */
const skewMs = 3600 * 1000;

const authorityName = 'bullion admission';

export interface StoredPairs {
  readonly authority?:
    | (Pair & { /** Those that are trusted, as PEM, the newest first. */ readonly trusted: string })
    | undefined;
  readonly server?: Pair | undefined;
}

export interface Tended {
  readonly authority: NonNullable<StoredPairs['authority']>;
  readonly server: Pair;
  readonly isNew: { readonly authority: boolean; readonly server: boolean };
}

const validFrom = (now: number, life: number): Validity => ({ from: new Date(now - skewMs), to: new Date(now + life) });

const read = (pem: string | undefined): X509Certificate | undefined => {
  try {
    return new X509Certificate(pem ?? '');
  } catch {
    return undefined;
  }
};

/** Whether enough validity is left; a certificate from the future was issued with a wrong clock. */
const isFresh = (certificate: X509Certificate | undefined, life: number, now: number): certificate is X509Certificate =>
  certificate !== undefined &&
  certificate.validToDate.getTime() - now > life / 3 &&
  certificate.validFromDate.getTime() <= now;

/** The single certificates of a bundle. */
const split = (bundle: string): readonly string[] =>
  bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)?.map((pem) => `${pem}\n`) ?? [];

const stillTrusted = (bundle: string, now: number): readonly string[] =>
  split(bundle).filter((pem) => (read(pem)?.validToDate.getTime() ?? 0) > now);

const renewAuthority = (kept: StoredPairs['authority'], now: number): Tended['authority'] => {
  const certificate = read(kept?.certificate);
  if (kept !== undefined && isFresh(certificate, lives.authority, now)) return kept;
  const made = createAuthority(authorityName, validFrom(now, lives.authority));
  // Servers that have not loaded their new certificate yet must still be trusted.
  return { ...made, trusted: [made.certificate, ...stillTrusted(kept?.trusted ?? '', now)].join('') };
};

const isFor = (certificate: X509Certificate, names: readonly string[]): boolean =>
  names.every((name) => certificate.checkHost(name) !== undefined);

const renewServer = (kept: Pair | undefined, authority: Pair, names: readonly string[], now: number): Pair => {
  const certificate = read(kept?.certificate);
  const issuer = read(authority.certificate);
  const isGood =
    kept !== undefined &&
    issuer !== undefined &&
    isFresh(certificate, lives.server, now) &&
    isFor(certificate, names) &&
    certificate.checkIssued(issuer) &&
    certificate.verify(issuer.publicKey);
  return isGood ? kept : issueServer(authority, names, validFrom(now, lives.server));
};

/** The desired certificates; the same objects if there is nothing to do. */
export const renewPairs = (kept: StoredPairs, names: readonly string[], now: number): Tended => {
  const authority = renewAuthority(kept.authority, now);
  const server = renewServer(kept.server, authority, names, now);
  return { authority, server, isNew: { authority: authority !== kept.authority, server: server !== kept.server } };
};
