// Harvester's upload action of an image. Its clients send a form with a part called `chunk`; the plain file is accepted, too.
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { authenticate } from '#shared/exchange/access/caller.ts';
import { permit } from '#shared/exchange/access/permit.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { findTarget } from '#shared/exchange/target.ts';
import { type TargetName, targetText } from '#shared/exchange/target-name.ts';
import { deliver } from '#shared/exchange/upload/deliver.ts';
import { fileOf } from '#shared/exchange/upload/file-part.ts';
import type { Checksum } from '#shared/transfer/spec.ts';
import { type Sent, arrivedStatus } from '#shared/exchange/upload/session.ts';

const wholeNumber = (query: URLSearchParams, name: string): number | undefined => {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new Problem(400, 'BadRequest', `${name} must be a number of bytes, and is "${text.slice(0, 40)}"`);
};

const checksumOf = (query: URLSearchParams): Checksum | undefined => {
  const text = query.get('checksum');
  if (text === null) return undefined;
  const parsed = parseChecksum(text);
  if ('value' in parsed) return parsed.value;
  throw new Problem(400, 'BadRequest', 'checksum must be <algorithm>:<hex>, of md5, sha1, sha256 or sha512');
};

/** HTTP statuses for results of the upload Job that are not a success. */
export const statusOf = ({ status, reason }: Pick<Sent, 'status' | 'reason'>): number => {
  if (status === 423) return 409;
  if (status === 422) return reason === 'ImageTooLarge' ? 413 : 400;
  return status;
};

export const requireTaken = (sent: Sent): void => {
  if ([200, 204, arrivedStatus].includes(sent.status)) return;
  throw new Problem(statusOf(sent), sent.reason, sent.message);
};

/** Proxies time out before a large disk is complete. */
const arrived = (name: TargetName): Response =>
  Response.json(
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      message: `the file has arrived and is being written and verified: the status of ${targetText(name)} shows the result`,
      code: arrivedStatus,
    },
    { status: arrivedStatus },
  );

export const uploadToImage = async (deps: ExchangeDeps, request: Request, name: TargetName): Promise<Response> => {
  await permit(deps.kube, await authenticate(request, deps), 'upload', name);
  const query = new URL(request.url).searchParams;
  const [size, virtualSize, checksum] = [
    wholeNumber(query, 'size'),
    wholeNumber(query, 'virtualSize'),
    checksumOf(query),
  ];
  const target = await findTarget(deps.kube, name);
  const body = await fileOf(request, 'either');
  const file = { stream: body.stream, length: size ?? body.length };
  const sent = await deliver(deps, {
    target,
    file,
    virtualSize,
    checksum,
    waits: deps.answerSeconds,
    signal: request.signal,
  });
  requireTaken(sent);
  return sent.status === arrivedStatus ? arrived(name) : new Response(null, { status: 200 });
};
