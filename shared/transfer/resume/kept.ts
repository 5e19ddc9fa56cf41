// A raw disk that is on the target in part: its first bytes come from there, and only the rest from the source.
import { open } from 'node:fs/promises';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Pass } from '#shared/transfer/pass.ts';
import type { Mark } from '#shared/transfer/resume/mark.ts';
import { streamAhead } from '#shared/transfer/source/stream-ahead.ts';

const pieceBytes = 1024 * 1024;

async function* keptBytes(path: string, length: number): AsyncGenerator<Buffer, void, undefined> {
  const file = await open(path, 'r');
  try {
    for (let at = 0; at < length; at += pieceBytes) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, length - at));
      // A piece at a time: the reader decides how fast.
      // oxlint-disable-next-line no-await-in-loop
      const got = await readFully(file, piece, at);
      if (got < piece.length)
        throw new TransferError('SourceChanged', `${path} became shorter than what was kept`, { startOver: true });
      yield piece;
    }
  } finally {
    await file.close();
  }
}

/** The same pass over what the disk at `path` holds up to the mark and the source has behind it. It is digested as if it had come in one piece. */
export const withKeptBytes = (pass: Pass, path: string, { position }: Mark): Pass => {
  const { source, plan } = pass;
  return {
    ...pass,
    plan: { ...plan, facts: { ...plan.facts, hasRanges: false } },
    source: {
      ...source,
      stream: async function* stream() {
        yield* keptBytes(path, position);
        yield* streamAhead(source, plan.facts, { from: position });
      },
    },
  };
};
