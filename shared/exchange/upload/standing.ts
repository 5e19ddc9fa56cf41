// The state of an upload, for clients that resume it.
import { authenticate } from '#shared/exchange/access/caller.ts';
import { permit } from '#shared/exchange/access/caller.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { findTarget } from '#shared/exchange/target.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import { closedBecause, openUpload } from '#shared/exchange/upload/open.ts';
import { z } from 'zod';

export const Standing = z.object({
  stage: z.enum(['no-upload', 'theirs', 'unoffered', 'open', 'done', 'failed']),
  /** What to do if no more bytes are accepted. */
  message: z.string(),
  /** `sha256:<hex>` of the original file, once it is complete. */
  digest: z.string().optional(),
  /** The current file. Default: none. */
  upload: z
    .object({ id: z.string(), offset: z.number(), length: z.number().optional(), checksum: z.string().optional() })
    .optional(),
});
export type Standing = z.infer<typeof Standing>;

/** Throws a Problem. */
export const standingOf = async (deps: ExchangeDeps, request: Request, name: TargetName): Promise<Standing> => {
  await permit(deps.kube, await authenticate(request, deps), 'upload', name);
  const target = await findTarget(deps.kube, name);
  const { stage, digest } = target;
  const message = closedBecause(target)?.message ?? target.message;
  if (stage !== 'open') return { stage, message, ...(digest === undefined ? {} : { digest }) };
  const { state } = await openUpload(deps, target, request.signal);
  const { announced, offset, length } = state;
  if (announced === undefined) return { stage, message };
  const { id, checksum } = announced;
  const sum = checksum === undefined ? {} : { checksum: `${checksum.algorithm}:${checksum.hex}` };
  return { stage, message, upload: { id, offset, ...(length === undefined ? {} : { length }), ...sum } };
};
