// What a look at a source tells, and what is remembered of it for the next look. It travels in events.
import { z } from 'zod';

/** What earlier polls wrote down: lets a source say "the same" cheaply. */
export const Validators = z.object({
  /** Digest a reference led to, an index perhaps. */
  sourceDigest: z.string().optional(),
  etag: z.string().optional(),
  lastModified: z.string().optional(),
});
export type Validators = Readonly<z.infer<typeof Validators>>;

export const Observation = z.discriminatedUnion('is', [
  z.object({
    is: z.literal('found'),
    /** Names the version: `sha256:`, `sha512:` or `uid:`; `validator:` where only the fetched bytes will tell. */
    digest: z.string(),
    /** How it was found, for people. */
    message: z.string(),
    tag: z.string().optional(),
    memory: Validators,
  }),
  /** Nothing is new since the memory was written. */
  z.object({ is: z.literal('same'), message: z.string() }),
  z.object({
    is: z.literal('failed'),
    /** CamelCase, stable. `RateLimited`: the host wants to be left alone. */
    reason: z.string(),
    /** In the words of who refused, redacted. */
    message: z.string(),
    /** Seconds the other side asked to be left alone. */
    retryAfterSeconds: z.number().optional(),
  }),
  /** Nothing was asked: the host of the source wants to be left alone. */
  z.object({
    is: z.literal('waiting'),
    message: z.string(),
    /** RFC 3339: when this one may ask. */
    until: z.string(),
  }),
]);
export type Observation = Readonly<z.infer<typeof Observation>>;
