// What a signature of an image says, in each of the forms that cosign writes: which digest, and which bytes are signed. Pure.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Evidence } from '#shared/golden/signature/cosign/evidence.ts';
import { parseJson } from '#shared/runtime/json.ts';

/** Read, not verified. */
export interface Statement {
  readonly kind: 'cosign' | 'sigstore-bundle';
  /** Exactly what was signed. */
  readonly signed: Buffer;
  readonly signatures: readonly Buffer[];
  /** Digests that it is about. */
  readonly digests: readonly string[];
  /** RFC 3339, as the signer wrote it. */
  readonly signedAt?: string | undefined;
  /** A sigstore bundle as JSON, where a certificate and transparency logs come with it. */
  readonly bundle?: unknown;
}

export type ReadStatement = { readonly value: Statement } | { readonly problem: string };

const jsonOf = (bytes: Buffer): unknown => parseJson(bytes.toString('utf8'));

const problem = (text: string): ReadStatement => ({ problem: text });

const Payload = z.looseObject({
  critical: z.looseObject({
    type: z.literal('cosign container image signature'),
    image: z.looseObject({ 'docker-manifest-digest': z.string() }),
  }),
  optional: z
    .looseObject({ timestamp: z.int().positive().optional().catch(undefined) })
    .nullish()
    .catch(undefined),
});

const Base64 = z
  .string()
  .regex(/^[A-Za-z0-9+/]+={0,2}$/)
  .transform((text) => Buffer.from(text, 'base64'));

const timeOf = (seconds: number | undefined): string | undefined => {
  const date = new Date((seconds ?? Number.NaN) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
};

const annotation = {
  signature: 'dev.cosignproject.cosign/signature',
  certificate: 'dev.sigstore.cosign/certificate',
  log: 'dev.sigstore.cosign/bundle',
  timestamp: 'dev.sigstore.cosign/rfc3161timestamp',
} as const;

const readSimple = ({ bytes, annotations }: Evidence): ReadStatement => {
  const signature = Base64.safeParse(annotations[annotation.signature]);
  if (!signature.success) return problem(`has no annotation ${annotation.signature} in base64`);
  const payload = Payload.safeParse(jsonOf(bytes));
  if (!payload.success) return problem('is not the payload of a container image signature');
  const { critical, optional } = payload.data;
  const digests = [critical.image['docker-manifest-digest']];
  const signedAt = timeOf(optional?.timestamp);
  const messageDigest = { algorithm: 'SHA2_256', digest: createHash('sha256').update(bytes).digest('base64') };
  const content = { messageSignature: { messageDigest, signature: signature.data.toString('base64') } };
  const bundle = bundleOfAnnotations(content, annotations);
  return { value: { kind: 'cosign', signed: bytes, signatures: [signature.data], digests, signedAt, bundle } };
};

const Log = z.object({
  SignedEntryTimestamp: z.string(),
  Payload: z.object({ body: Base64, integratedTime: z.int(), logIndex: z.int(), logID: z.string() }),
});
const LogBody = z.looseObject({ kind: z.string(), apiVersion: z.string() });
const Timestamp = z.object({ SignedRFC3161Timestamp: z.string() });

const logEntryOf = (text: string | undefined): object | undefined => {
  const log = Log.safeParse(jsonOf(Buffer.from(text ?? '')));
  const body = log.success ? LogBody.safeParse(jsonOf(log.data.Payload.body)) : undefined;
  if (!log.success || body?.success !== true) return undefined;
  const { SignedEntryTimestamp: promise, Payload: entry } = log.data;
  return {
    logIndex: String(entry.logIndex),
    logId: { keyId: Buffer.from(entry.logID, 'hex').toString('base64') },
    kindVersion: { kind: body.data.kind, version: body.data.apiVersion },
    integratedTime: String(entry.integratedTime),
    inclusionPromise: { signedEntryTimestamp: promise },
    canonicalizedBody: entry.body.toString('base64'),
  };
};

/** The form before bundles had its parts in annotations. `undefined`: a key signed, without a certificate. `content`: what is signed, and by what. */
const bundleOfAnnotations = (content: object, annotations: Evidence['annotations']): unknown => {
  const pem = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(
    annotations[annotation.certificate] ?? '',
  )?.[1];
  if (pem === undefined) return undefined;
  const entry = logEntryOf(annotations[annotation.log]);
  const stamp = Timestamp.safeParse(jsonOf(Buffer.from(annotations[annotation.timestamp] ?? '')));
  const stamps = stamp.success ? [{ signedTimestamp: stamp.data.SignedRFC3161Timestamp }] : [];
  return {
    mediaType: 'application/vnd.dev.sigstore.bundle+json;version=0.1',
    verificationMaterial: {
      x509CertificateChain: { certificates: [{ rawBytes: pem.replaceAll(/\s/g, '') }] },
      tlogEntries: entry === undefined ? [] : [entry],
      timestampVerificationData: { rfc3161Timestamps: stamps },
    },
    ...content,
  };
};

const Envelope = z.looseObject({
  payload: Base64,
  payloadType: z.literal('application/vnd.in-toto+json'),
  signatures: z
    .array(z.looseObject({ sig: Base64 }))
    .min(1)
    .max(16),
});

const Bundle = z.looseObject({
  mediaType: z.string(),
  verificationMaterial: z.looseObject({}),
  dsseEnvelope: Envelope,
});

const InToto = z.looseObject({
  _type: z.string().startsWith('https://in-toto.io/Statement/'),
  predicateType: z.string(),
  subject: z.array(z.looseObject({ digest: z.record(z.string(), z.string()) })).max(256),
});

/** Only this says that the image is approved: provenance and bills of material describe it, and are signed by the same keys. */
const signPredicate = 'https://sigstore.dev/cosign/sign/v1';

/** Pre-authentication encoding of DSSE. */
const encodeDsse = (type: string, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload]);

/** What a signed in-toto statement says, whatever it is about. */
export interface Attested extends Statement {
  readonly predicateType: string;
}

const readEnvelope = (
  { payload, payloadType, signatures }: z.infer<typeof Envelope>,
  bundle: unknown,
): { readonly value: Attested } | { readonly problem: string } => {
  const statement = InToto.safeParse(jsonOf(payload));
  if (!statement.success) return { problem: 'holds no in-toto statement' };
  const { predicateType, subject } = statement.data;
  const digests = subject.flatMap(({ digest }) =>
    Object.entries(digest).map(([algorithm, hex]) => `${algorithm}:${hex}`),
  );
  return {
    value: {
      kind: 'sigstore-bundle',
      signed: encodeDsse(payloadType, payload),
      signatures: signatures.map(({ sig }) => sig),
      digests,
      bundle,
      predicateType,
    },
  };
};

/** Of an attestation, in a bundle or in an envelope alone. `problem` completes "the attestation at … ". */
export const readAttested = ({
  form,
  bytes,
  annotations,
}: Evidence): { readonly value: Attested } | { readonly problem: string } => {
  const json = jsonOf(bytes);
  if (form === 'bundle') {
    const bundle = Bundle.safeParse(json);
    if (bundle.success) return readEnvelope(bundle.data.dsseEnvelope, json);
    return { problem: 'is not a sigstore bundle with a signed in-toto statement' };
  }
  const envelope = Envelope.safeParse(json);
  if (!envelope.success) return { problem: 'is not an envelope with a signed in-toto statement' };
  return readEnvelope(envelope.data, bundleOfAnnotations({ dsseEnvelope: json }, annotations));
};

const readBundle = (evidence: Evidence): ReadStatement => {
  const read = readAttested(evidence);
  if ('problem' in read) return read;
  const { predicateType } = read.value;
  if (predicateType === signPredicate) return read;
  return problem(`is an attestation of type ${predicateType.slice(0, 100)}, not a signature of the image`);
};

/** `problem` completes "the signature at … ". */
export const readStatement = (evidence: Evidence): ReadStatement =>
  evidence.form === 'simple' ? readSimple(evidence) : readBundle(evidence);

export const isApproval = ({ predicateType }: Attested): boolean => predicateType === signPredicate;
