// Signatures by minisign and by OpenBSD's signify: Ed25519 over the file, or over its BLAKE2b-512. Pure.
import { type KeyObject, createHash, createPublicKey, verify } from 'node:crypto';
import type { SignatureFormat, SignedText } from '#shared/golden/signature/files.ts';
import { type SignatureRefusal, refuse } from '#shared/golden/signature/outcome.ts';

interface MinisignKey {
  /** As minisign prints it. */
  readonly id: string;
  readonly key: KeyObject;
}

const keyBytes = 2 + 8 + 32;
const signatureBytes = 2 + 8 + 64;
/** What DER has before the 32 bytes of an Ed25519 key. */
const derPrefix = Buffer.from('302a300506032b6570032100', 'hex');

const base64Line = /^[A-Za-z0-9+/]{56,}={0,2}$/;

/** The first line that is base64: before it stands a comment that anybody may have written. */
const decode = (text: string, length: number): Buffer | undefined => {
  const line = text.split(/\r?\n/, 8).find((one) => base64Line.test(one.trim()));
  const bytes = Buffer.from(line ?? '', 'base64');
  return bytes.length === length ? bytes : undefined;
};

const idOf = (bytes: Buffer): string => Buffer.from(bytes.subarray(2, 10)).reverse().toString('hex').toUpperCase();

export const readMinisignKeys = (
  contents: readonly Buffer[],
  where: string,
): readonly MinisignKey[] | SignatureRefusal => {
  const keys: MinisignKey[] = [];
  for (const content of contents) {
    const bytes = decode(content.toString('utf8'), keyBytes);
    if (bytes === undefined || bytes.subarray(0, 2).toString('latin1') !== 'Ed')
      return refuse(
        'InvalidPolicy',
        `${where} holds something other than a public key of minisign or signify: put in the file minisign.pub`,
      );
    const key = createPublicKey({ key: Buffer.concat([derPrefix, bytes.subarray(10)]), format: 'der', type: 'spki' });
    keys.push({ id: idOf(bytes), key });
  }
  return keys.length > 0 ? keys : refuse('InvalidPolicy', `${where} holds no public key: put in the file minisign.pub`);
};

const trustedComment = 'trusted comment: ';
const timestamp = /\btimestamp:(\d{1,12})\b/;

const isGood = (key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean =>
  verify(null, bytes, key, signature);

/** The comment that the key signed as well, where there is one; `undefined` where its signature is bad. */
const commentOf = (text: string, signature: Buffer, key: KeyObject): string | undefined => {
  const lines = text.split(/\r?\n/, 16);
  const at = lines.findIndex((line) => line.startsWith(trustedComment));
  if (at === -1) return '';
  const comment = lines[at]?.slice(trustedComment.length) ?? '';
  const global = Buffer.from(lines[at + 1] ?? '', 'base64');
  return isGood(key, Buffer.concat([signature, Buffer.from(comment)]), global) ? comment : undefined;
};

const judge = (
  keys: readonly MinisignKey[],
  data: Buffer,
  file: Buffer,
  where: string,
): SignedText | SignatureRefusal => {
  const text = file.toString('utf8');
  const bytes = decode(text, signatureBytes);
  const algorithm = bytes?.subarray(0, 2).toString('latin1') ?? '';
  if (bytes === undefined || !['Ed', 'ED'].includes(algorithm))
    return refuse('BadSignature', `${where} cannot be read as a signature by minisign or signify`);
  const id = idOf(bytes);
  const known = keys.find((one) => one.id === id);
  if (known === undefined)
    return refuse(
      'WrongKey',
      `${where} is by key ${id}, which is not one of the trusted keys (${keys.map((one) => one.id).join(', ')})`,
    );
  const signature = bytes.subarray(10);
  const signed = algorithm === 'ED' ? createHash('blake2b512').update(data).digest() : data;
  const comment = isGood(known.key, signed, signature) ? commentOf(text, signature, known.key) : undefined;
  if (comment === undefined)
    return refuse(
      'BadSignature',
      `${where} by key ${id} does not fit: the file was changed after it was signed, or the two are being replaced at this moment`,
    );
  const seconds = Number(timestamp.exec(comment)?.[1]) * 1000;
  const signedAt = Number.isNaN(seconds) ? undefined : new Date(seconds).toISOString();
  return { is: 'signed', text: data.toString('utf8'), by: id, signedAt };
};

export const minisign = (keys: readonly MinisignKey[]): SignatureFormat => ({
  kind: 'minisign',
  suffixes: ['.minisig', '.sig'],
  isWithin: () => false,
  within: (_, where) => Promise.resolve(refuse('Unsigned', `${where} holds no signature of its own`)),
  detached: (data, signature, where) => Promise.resolve(judge(keys, data, signature, where)),
});
