// Digests whose state can be written down and taken up again. A seventh as fast as OpenSSL's, which cannot. Loaded where it is needed.
import { createMD5, createSHA1, createSHA256, createSHA512 } from 'hash-wasm';

export interface SavableHash {
  readonly update: (bytes: Uint8Array) => unknown;
  readonly digest: () => string;
  readonly save: () => Uint8Array;
}

const creators = { md5: createMD5, sha1: createSHA1, sha256: createSHA256, sha512: createSHA512 };

/** `state`: what `save` gave, in base64. Throws on a state of another algorithm or another version of it. */
export const createSavableHash = async (algorithm: string, state?: string): Promise<SavableHash> => {
  const create = creators[algorithm as keyof typeof creators];
  const hash = (await create()).init();
  return state === undefined ? hash : hash.load(Buffer.from(state, 'base64'));
};
