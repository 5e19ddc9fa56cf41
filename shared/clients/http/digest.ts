// The digest of a file where its server states one, in whichever of the headers for it. Pure.

type Headers = Readonly<Record<string, string | undefined>>;

const sha256Length = 32;

const fromBase64 = (text: string | undefined): string | undefined => {
  if (!/^[A-Za-z0-9+/]+=*$/.test(text ?? '')) return undefined;
  const bytes = Buffer.from(text ?? '', 'base64');
  return bytes.length === sha256Length ? `sha256:${bytes.toString('hex')}` : undefined;
};

const fromHex = (text: string | undefined): string | undefined =>
  /^[0-9a-f]{64}$/i.test(text ?? '') ? `sha256:${text?.toLowerCase()}` : undefined;

/** `sha-256=:…:` of RFC 9530. */
const ofRepresentation = ({ 'repr-digest': text }: Headers): string | undefined =>
  fromBase64(/(?:^|[\s,])sha-256=:([A-Za-z0-9+/=]+):/i.exec(text ?? '')?.[1]);

/** `SHA-256=…` of RFC 3230. */
const ofInstance = ({ digest: text }: Headers): string | undefined =>
  fromBase64(/(?:^|[\s,])sha-256=([A-Za-z0-9+/=]+)/i.exec(text ?? '')?.[1]);

/** As repositories of artifacts say it. */
const ofArtifact = (headers: Headers): string | undefined => fromHex(headers['x-checksum-sha256']);

/** S3 stores say it of objects that came in one piece; one of several parts has a number behind it. */
const ofObject = (headers: Headers): string | undefined => fromBase64(headers['x-amz-checksum-sha256']);

/** `undefined` where the server states none, or states that of an encoding in place of the file's. */
export const statedDigest = (headers: Headers): string | undefined => {
  const { 'content-encoding': encoding = 'identity' } = headers;
  if (encoding !== 'identity') return undefined;
  return ofRepresentation(headers) ?? ofInstance(headers) ?? ofArtifact(headers) ?? ofObject(headers);
};
