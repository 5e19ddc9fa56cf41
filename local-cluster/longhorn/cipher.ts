// Encryption at rest in the simulation: AES-XTS over pieces of 1 MiB, after a header that verifies the key. Longhorn uses LUKS; here it only
// matters that bytes are unreadable without the right Secret.
import { createCipheriv, createDecipheriv, createHmac, scryptSync, timingSafeEqual } from 'node:crypto';
import { Transform } from 'node:stream';

export type Key = Buffer;

const pieceBytes = 2 ** 20;
/** A disk has whole sectors, and so must the header. */
const headBytes = 512;

/** The value of CRYPTO_KEY_VALUE in the Secret of a class. */
export const keyOf = (passphrase: string): Key => scryptSync(passphrase, 'bullion-local', 64);

const proofOf = (key: Key): Buffer => createHmac('sha256', key).update('proof').digest();

const tweakOf = (index: number): Buffer => {
  const tweak = Buffer.alloc(16);
  tweak.writeBigUInt64LE(BigInt(index));
  return tweak;
};

type Piece = (piece: Buffer, index: number) => Buffer;

/** Divides a stream into pieces of 1 MiB; the last may be shorter. */
const byPieces = (change: Piece, begin: (push: (chunk: Buffer) => void) => void = () => {}): Transform => {
  let rest: Buffer = Buffer.alloc(0);
  let index = 0;
  return new Transform({
    construct(done) {
      begin((chunk) => this.push(chunk));
      done();
    },
    transform(chunk: Buffer, _encoding, done) {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= pieceBytes) {
        this.push(change(rest.subarray(0, pieceBytes), (index += 1)));
        rest = rest.subarray(pieceBytes);
      }
      done();
    },
    flush(done) {
      if (rest.length > 0) this.push(change(rest, (index += 1)));
      done();
    },
  });
};

export const encrypting = (key: Key): Transform =>
  byPieces(
    (piece, index) => {
      const cipher = createCipheriv('aes-256-xts', key, tweakOf(index));
      return Buffer.concat([cipher.update(piece), cipher.final()]);
    },
    (push) => push(Buffer.concat([proofOf(key), Buffer.alloc(headBytes - 32)])),
  );

/** Fails the stream if the key is not the one of the encryption. */
export const decrypting = (key: Key): Transform => {
  let head: Buffer | undefined = Buffer.alloc(0);
  const pieces = byPieces((piece, index) => {
    const cipher = createDecipheriv('aes-256-xts', key, tweakOf(index));
    return Buffer.concat([cipher.update(piece), cipher.final()]);
  });
  const step = pieces._transform.bind(pieces);
  pieces._transform = (chunk: Buffer, encoding, done) => {
    if (head === undefined) return step(chunk, encoding, done);
    head = Buffer.concat([head, chunk]);
    if (head.length < headBytes) return done();
    const fits = timingSafeEqual(head.subarray(0, 32), proofOf(key));
    if (!fits) return done(new Error('the Secret does not open the backing image'));
    const rest = head.subarray(headBytes);
    head = undefined;
    return step(rest, encoding, done);
  };
  return pieces;
};
