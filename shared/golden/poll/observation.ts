// What a look at a source tells, and what is remembered of it for the next look.

/** What earlier polls wrote down: lets a source say "the same" cheaply. */
export interface Memory {
  /** Digest a reference led to, an index perhaps. */
  readonly sourceDigest?: string | undefined;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
}

export type Observation =
  | {
      readonly is: 'found';
      /** Names the version: `sha256:`, `sha512:` or `uid:`. */
      readonly digest: string;
      /** How it was found, for people. */
      readonly message: string;
      readonly tag?: string | undefined;
      readonly memory: Memory;
    }
  /** Nothing is new since `memory` was written. */
  | { readonly is: 'same'; readonly message: string }
  | {
      readonly is: 'failed';
      /** CamelCase, stable. */
      readonly reason: string;
      /** In the words of who refused, redacted. */
      readonly message: string;
      /** Seconds the other side asked to be left alone. */
      readonly retryAfterSeconds?: number | undefined;
    };
