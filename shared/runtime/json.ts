// JSON texts that anybody may have written: annotations, files, tokens, answers of servers.
import type { z } from 'zod';

/** `undefined`: there is no text, or it is not JSON. What the parser says of it is dropped, since it may quote a secret. */
export const parseJson = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
};

/** `undefined`: as above, or the value does not match the schema. */
export const parseJsonAs = <T>(schema: z.ZodType<T>, text: string | undefined): T | undefined =>
  schema.safeParse(parseJson(text)).data;

/** As it is on the wire: without fields that are `undefined`. */
export const withoutUndefined = <V>(value: V): V => JSON.parse(JSON.stringify(value)) as V;
