// What a look at the signatures of one version came to. Pure.
import type { Attestation, SignatureRule } from '#shared/api/bullion/verify.ts';
import type { CronSource } from '#shared/golden/source.ts';
import { type AppError, messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';

// The keys that a policy names, out of its ConfigMap.

interface ConfigMapData {
  readonly data?: Readonly<Record<string, string>> | undefined;
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
}

/** A ConfigMap of the namespace that holds the keys; `undefined` where it does not exist. */
export type ReadConfigMap = (name: string) => Promise<ConfigMapData | undefined>;

/** Why no signature could be verified by a rule; `undefined`: its keys can be used. Throws what `read` throws. */
export type WhyUnusable = (rule: SignatureRule, read: ReadConfigMap) => Promise<SignatureRefusal | undefined>;

/** ConfigMaps that a rule takes keys or a trust root from. */
export const keyMapsOf = ({ cosign, gpg, minisign }: SignatureRule): readonly string[] =>
  [cosign?.keys?.configMap, cosign?.trustRoot?.configMap, gpg?.keys.configMap, minisign?.keys.configMap].filter(
    (name) => name !== undefined,
  );

export const keysMissing = (name: string, namespace: string): string =>
  `ConfigMap ${name} does not exist in namespace ${namespace}: create it there with the public keys`;

export const contentsOf = async (read: ReadConfigMap, name = ''): Promise<readonly Buffer[] | SignatureRefusal> => {
  const found = await read(name);
  if (found === undefined)
    return refuse('InvalidPolicy', `ConfigMap ${name} does not exist: create it with the public keys`);
  const { data = {}, binaryData = {} } = found;
  return [
    ...Object.values(data).map((text) => Buffer.from(text)),
    ...Object.values(binaryData).map((text) => Buffer.from(text, 'base64')),
  ];
};

export const textsOf = async (read: ReadConfigMap, name?: string): Promise<readonly string[] | SignatureRefusal> => {
  const contents = await contentsOf(read, name);
  return 'is' in contents ? contents : contents.map((bytes) => bytes.toString('utf8'));
};

/** Why a version is not offered, the reason that is nearest to a good signature first: of several signatures that one is reported. */
const reasons = [
  /** Signed by a trusted key, but for other bytes. */
  'DigestNotSigned',
  'KeyRevoked',
  'KeyExpired',
  'SignatureExpired',
  /** A trusted authority knows the signer, who is another one. */
  'WrongIdentity',
  /** It names a trusted key, and does not fit; or it cannot be read. */
  'BadSignature',
  'WrongKey',
  /** Signed, but without what else the policy asks its signers to say. */
  'AttestationMissing',
  'Unsigned',
  /** The policy cannot be applied: its keys are absent or unusable, or it is for another kind of source. */
  'InvalidPolicy',
] as const;
export type SignatureReason = (typeof reasons)[number];

export interface SignatureRefusal {
  readonly is: 'refused';
  readonly reason: SignatureReason;
  /** What, where, and what to do. */
  readonly message: string;
}

export interface Verified {
  readonly is: 'verified';
  /** The digest that was asked about: exactly the bytes with this digest are signed. */
  readonly digest: string;
  /** `cosign`, `sigstore-bundle`, `openpgp`, `minisign`. */
  readonly kind: string;
  /** Fingerprint of the key, or identity and issuer. */
  readonly by: string;
  /** RFC 3339, where the signature says it. */
  readonly signedAt?: string | undefined;
  /** For people: who signed what, and where that was found. */
  readonly message: string;
  /** What signers of the policy attest of it. */
  readonly attestations?: readonly Attestation[] | undefined;
}

export type SignatureOutcome =
  | Verified
  | SignatureRefusal
  /** Nothing was decided: to be tried again. */
  | {
      readonly is: 'unreachable';
      /** Code of the failure. */
      readonly reason: string;
      readonly message: string;
      readonly retryAfterSeconds?: number | undefined;
    };

export interface SignatureRequest {
  readonly source: CronSource;
  /** Where Secrets and ConfigMaps are looked up. */
  readonly namespace: string;
  readonly rule: SignatureRule;
  /** Where the keys are looked up. Default: `namespace`. */
  readonly keysNamespace?: string | undefined;
  /** Of the version. */
  readonly digest: string;
  /** What the source named when it was polled, where that is an index which lists the version's digest. */
  readonly sourceDigest?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Takes the rule of a policy and a version; throws nothing for the faults of sources and signatures. */
export type VerifySignature = (request: SignatureRequest) => Promise<SignatureOutcome>;

/** The least text of others that a message repeats. */
const mostWords = 600;

export const refuse = (reason: SignatureReason, message: string): SignatureRefusal => ({
  is: 'refused',
  reason,
  message: redact(message).slice(0, mostWords),
});

export const unreachable = (error: AppError): SignatureOutcome => ({
  is: 'unreachable',
  reason: error.code,
  message: redact(messageOf(error)).slice(0, mostWords),
  retryAfterSeconds: error.retryAfterSeconds,
});

/** A good one among them; else the refusal that tells most, with how many there were. */
export const bestOf = <T extends { readonly is: string }>(
  found: readonly (T | SignatureRefusal)[],
  none: SignatureRefusal,
): T | SignatureRefusal => {
  const isRefusal = (one: T | SignatureRefusal): one is SignatureRefusal => one.is === 'refused';
  const good = found.find((one): one is T => !isRefusal(one));
  if (good !== undefined) return good;
  const rank = ({ reason }: SignatureRefusal): number => reasons.indexOf(reason);
  const [nearest, ...others] = found.filter(isRefusal).toSorted((a, b) => rank(a) - rank(b));
  if (nearest === undefined) return none;
  if (others.length === 0) return nearest;
  return { ...nearest, message: `${nearest.message} (one of ${found.length} signatures, none of them good)` };
};
