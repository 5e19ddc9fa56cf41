// Digests whose state can be saved and restored. They have a seventh of the speed of OpenSSL's, which cannot. Loaded on demand.
import { createMD5, createSHA1, createSHA256, createSHA512 } from 'hash-wasm';

export interface SavableHash {
  readonly update: (bytes: Uint8Array) => unknown;
  readonly digest: () => string;
  readonly save: () => Uint8Array;
}

const creators = { md5: createMD5, sha1: createSHA1, sha256: createSHA256, sha512: createSHA512 };

/** `state`: a result of `save`, in base64. Throws for a state of another algorithm or another version. */
export const createSavableHash = async (algorithm: string, state?: string): Promise<SavableHash> => {
  const create = creators[algorithm as keyof typeof creators];
  const hash = (await create()).init();
  return state === undefined ? hash : hash.load(Buffer.from(state, 'base64'));
};
