// Lines of a byte stream, as they arrive. A stream that breaks throws, which readline's iterator does not promise. Called by watch.ts.

/** Yields each line without its end. Throws what the stream throws, and when it ends in the middle of a line. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  // Parts of the line in progress: joined once at its end, so that a line of many chunks costs linear time.
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    parts.push(first);
    for (const next of others) {
      yield parts.join('').replace(/\r$/, '');
      parts = [next];
    }
  }
  if (parts.join('') !== '') throw new Error('the stream ended in the middle of a line');
}
