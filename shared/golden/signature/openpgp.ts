// Signatures by gpg and other programs that speak OpenPGP. The library is loaded when the first one is looked at.
import type { Key, VerifyMessageResult } from 'openpgp';
import type { SignatureFormat, SignedText } from '#shared/golden/signature/files.ts';
import { type SignatureRefusal, type SignatureReason, bestOf, refuse } from '#shared/golden/signature/outcome.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const load = () => import('openpgp');
const clearHeader = '-----BEGIN PGP SIGNED MESSAGE-----';
const publicBlock = /-----BEGIN PGP PUBLIC KEY BLOCK-----[\s\S]+?-----END PGP PUBLIC KEY BLOCK-----/g;
const armorHeader = /^\s*-----BEGIN PGP /;
/** Of one file: each costs a computation with a public key. */
const mostSignatures = 16;

type Result = VerifyMessageResult['signatures'][number];

export type Keyring = readonly Key[];

const readOne = async ({ readKeys }: Awaited<ReturnType<typeof load>>, content: Buffer): Promise<readonly Key[]> => {
  const blocks = content.toString('utf8').match(publicBlock) ?? [];
  if (blocks.length === 0) return readKeys({ binaryKeys: content });
  return (await Promise.all(blocks.map((armoredKeys) => readKeys({ armoredKeys })))).flat();
};

/** Public keys, armored or not, of which each may have signed. `where` names the ConfigMap or file that holds them. */
export const readKeyring = async (contents: readonly Buffer[], where: string): Promise<Keyring | SignatureRefusal> => {
  const keys: Key[] = [];
  const library = await load();
  for (const content of contents) {
    if (content.includes('PRIVATE KEY'))
      return refuse(
        'InvalidPolicy',
        `${where} holds a private key, which belongs to the signer alone: remove it, and export the public one`,
      );
    try {
      keys.push(...(await readOne(library, content)));
    } catch (error) {
      return refuse(
        'InvalidPolicy',
        `${where} holds something other than an OpenPGP public key (${messageOf(error)}): put in what "gpg --armor --export KEY" prints`,
      );
    }
  }
  const secret = keys.some((key) => key.isPrivate());
  if (keys.length === 0 || secret)
    return refuse(
      'InvalidPolicy',
      `${where} must hold public keys alone: put in what "gpg --armor --export KEY" prints`,
    );
  return keys;
};

const nameOf = (key: Key): string => key.getFingerprint().toUpperCase();

/** The library says why in words alone. */
const reasonOf = (words: string): SignatureReason => {
  if (/revoked/i.test(words)) return 'KeyRevoked';
  if (/signature is expired/i.test(words)) return 'SignatureExpired';
  if (/expired|could not find valid signing key/i.test(words)) return 'KeyExpired';
  return 'BadSignature';
};

const advice: Partial<Record<SignatureReason, string>> = {
  KeyRevoked: 'its owner withdrew the key: get the new one from the vendor, and replace it in the policy',
  KeyExpired: 'get the extended or the new key from the vendor, and replace it in the policy',
  SignatureExpired: 'the vendor has to sign again',
  BadSignature: 'the file was changed after it was signed, or the two are being replaced at this moment',
};

const refuseFor = (where: string, key: Key, error: unknown): SignatureRefusal => {
  const reason = reasonOf(messageOf(error));
  return refuse(
    reason,
    `the signature of ${where} by key ${nameOf(key)} is refused (${messageOf(error)}): ${advice[reason] ?? ''}`,
  );
};

interface Looked {
  readonly where: string;
  readonly text: string;
  readonly keys: Keyring;
  readonly now: Date;
}

const judgeOne = async (result: Result, { where, text, keys, now }: Looked): Promise<SignedText | SignatureRefusal> => {
  const id = result.keyID.toHex().toUpperCase();
  const key = keys.find((one) => one.getKeys(result.keyID).length > 0);
  if (key === undefined)
    return refuse(
      'WrongKey',
      `${where} is signed by key ${id}, which is not one of the trusted keys (${keys.map(nameOf).join(', ')})`,
    );
  const { enums } = await load();
  try {
    const { packets } = await result.signature;
    const [packet] = packets;
    const isOfData = packet?.signatureType === enums.signature.text || packet?.signatureType === enums.signature.binary;
    if (packet === undefined || !isOfData)
      return refuse('BadSignature', `the signature of ${where} by key ${id} is not one of a document`);
    await result.verified;
    // That was the key when it signed. Who has an expired or withdrawn key can sign with any date.
    await key.getSigningKey(result.keyID, now);
    return { is: 'signed', text, by: nameOf(key), signedAt: packet.created?.toISOString() };
  } catch (error) {
    return refuseFor(where, key, error);
  }
};

const judgeAll = async (results: readonly Result[], looked: Looked): Promise<SignedText | SignatureRefusal> => {
  const found = await Promise.all(results.slice(0, mostSignatures).map((result) => judgeOne(result, looked)));
  return bestOf(found, refuse('Unsigned', `${looked.where} holds no signature`));
};

const unreadable = (where: string, error: unknown): SignatureRefusal =>
  refuse('BadSignature', `${where} cannot be read as an OpenPGP signature: ${messageOf(error)}`);

/** As `gpg --clear-sign` names its output. */
const misplaced = (where: string): SignatureRefusal =>
  refuse(
    'BadSignature',
    `${where} is a signed text in itself, and no signature of the file beside it: publish it in place of that file, or sign that one with gpg --armor --detach-sign`,
  );

/** What lies outside of the signed part is of no account: it is not in the text that comes back. */
const verifyClear = async (
  keys: Keyring,
  file: Buffer,
  where: string,
  now: Date,
): Promise<SignedText | SignatureRefusal> => {
  const { readCleartextMessage, verify } = await load();
  try {
    const message = await readCleartextMessage({ cleartextMessage: file.toString('utf8') });
    const { signatures } = await verify({ message, verificationKeys: [...keys], date: now });
    return await judgeAll(signatures, { where, text: message.getText(), keys, now });
  } catch (error) {
    return unreadable(where, error);
  }
};

const verifyDetached = async (
  keys: Keyring,
  data: Buffer,
  signature: Buffer,
  { where, now }: Pick<Looked, 'where' | 'now'>,
): Promise<SignedText | SignatureRefusal> => {
  const { createMessage, readSignature, verify } = await load();
  if (signature.includes(clearHeader)) return misplaced(where);
  try {
    const isArmored = armorHeader.test(signature.subarray(0, 200).toString('latin1'));
    const read = await (isArmored
      ? readSignature({ armoredSignature: signature.toString('utf8') })
      : readSignature({ binarySignature: signature }));
    const message = await createMessage({ binary: data });
    const { signatures } = await verify({ message, signature: read, verificationKeys: [...keys], date: now });
    return await judgeAll(signatures, { where, text: data.toString('utf8'), keys, now });
  } catch (error) {
    return unreadable(where, error);
  }
};

export const openPgp = (keys: Keyring, now: () => number): SignatureFormat => ({
  kind: 'openpgp',
  suffixes: ['.gpg', '.asc', '.sig', '.sign'],
  isWithin: (file) => file.includes(clearHeader),
  within: (file, where) => verifyClear(keys, file, where, new Date(now())),
  detached: (data, signature, where) => verifyDetached(keys, data, signature, { where, now: new Date(now()) }),
});
