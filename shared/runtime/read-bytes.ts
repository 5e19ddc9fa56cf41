// Reads a whole body into memory, up to a limit: a server may send without end.

interface BoundedBytes {
  /** At most as many as the limit. */
  readonly bytes: Buffer;
  /** As many as were received. */
  readonly received: number;
  /** There are more. They are not read, and the connection is closed. */
  readonly isCut: boolean;
}

export const readUpTo = async (body: AsyncIterable<Buffer>, most: number): Promise<BoundedBytes> => {
  const parts: Buffer[] = [];
  let received = 0;
  for await (const part of body) {
    parts.push(part);
    received += part.length;
    if (received > most) break;
  }
  return { bytes: Buffer.concat(parts).subarray(0, most), received, isCut: received > most };
};

/** Of a body whose size is known. */
export const readWhole = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync(body));
