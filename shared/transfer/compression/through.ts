// Feeds a stream of chunks through a Node transform and hands on what comes out, with back-pressure and one error.
import type { Transform } from 'node:stream';
import { feed } from '#shared/transfer/compression/feed.ts';

/** Chunks out of `transform` fed with `input`. A fault of the input is thrown as it is, one of the transform through `toFault`. */
export async function* through(
  input: AsyncIterable<Buffer>,
  transform: Transform,
  toFault: (error: unknown) => unknown,
): AsyncGenerator<Buffer, void, undefined> {
  const feeding = feed(input, transform);
  let isFinished = false;
  try {
    for await (const chunk of transform as AsyncIterable<Buffer>) yield chunk;
    isFinished = true;
  } catch (error) {
    const inputFault = await feeding;
    throw inputFault === undefined ? toFault(error) : inputFault.error;
  } finally {
    transform.destroy();
    if (!isFinished) await feeding;
  }
}
