// The mark of an unfinished transfer: the position at which another process resumes, if source and target are unchanged.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Pass } from '#shared/transfer/pass.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { open } from 'node:fs/promises';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { streamAhead } from '#shared/transfer/source/stream-ahead.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

export const Mark = z.object({
  /** Identifies source and target. */
  key: z.string(),
  /** Bytes of the published file whose content has been synced to the target. */
  position: z.number().int().positive(),
  /** Guest bytes written so far. */
  writtenBytes: z.number().int().nonnegative(),
  /** The states of its digests at `position`, in base64. */
  states: z.record(z.string(), z.string()),
});
export type Mark = z.infer<typeof Mark>;

/** With the same key, the same bytes would be written to the same positions. `undefined` if that is not guaranteed. */
export const markKey = ({ spec, plan }: Pass, virtualSize: number): string | undefined => {
  const { identity, hasRanges, isPinned, size } = plan.facts;
  if (identity === undefined || !hasRanges || !isPinned || size === undefined) return undefined;
  const named = [spec.source, spec.checksum ?? null, plan.inspection, identity, virtualSize];
  return createHash('sha256').update(JSON.stringify(named)).digest('hex');
};

const parse = (text: string | undefined, key: string): Mark | undefined => {
  const mark = parseJsonAs(Mark, text);
  return mark?.key === key ? mark : undefined;
};

/**
 * The mark of an earlier process for this pass; then the target is open and unchanged. Otherwise nothing was changed, and the sink must be
 * prepared.
 */
export const findMark = async (
  pass: Pass,
  sink: Sink,
  virtualSize: number,
  isUsable: (mark: Mark) => boolean,
): Promise<Mark | undefined> => {
  const key = markKey(pass, virtualSize);
  if (key === undefined) return undefined;
  const mark = parse(await sink.reopen(virtualSize), key);
  if (mark === undefined || !isUsable(mark)) return undefined;
  pass.onResume(mark.position);
  return mark;
};

/** A raw disk that is partly on the target: its first bytes are read from there, and only the rest from the source. */
const pieceBytes = 1024 * 1024;

async function* keptBytes(path: string, length: number): AsyncGenerator<Buffer, void, undefined> {
  const file = await open(path, 'r');
  try {
    for (let at = 0; at < length; at += pieceBytes) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, length - at));
      // One piece at a time, at the pace of the reader.
      const got = await readFully(file, piece, at);
      if (got < piece.length)
        throw new TransferError('SourceChanged', `${path} became shorter than what was kept`, { startOver: true });
      yield piece;
    }
  } finally {
    await file.close();
  }
}

/** The same pass over the content of the disk at `path` up to the mark, followed by the rest of the source. Digests cover both. */
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
