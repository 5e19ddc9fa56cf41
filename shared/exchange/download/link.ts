// A signed URL: whoever has it may download one target for a limited time, without an account of the cluster.
import { authenticate, permit } from '#shared/exchange/access/caller.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { formOf } from '#shared/exchange/download/file-name.ts';
import { publicUrlOf } from '#shared/exchange/http/public-url.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type TargetName, targetText } from '#shared/exchange/target-name.ts';
import type { ExportFormat } from '#shared/transfer/export/format.ts';
import { signToken } from '#shared/runtime/token.ts';

const standardSeconds = 3600;
/** No key is valid longer. */
const mostSeconds = 24 * 3600;

const secondsOf = (query: URLSearchParams): number => {
  const text = query.get('seconds');
  if (text === null) return standardSeconds;
  const seconds = Number(text);
  if (Number.isSafeInteger(seconds) && seconds >= 1 && seconds <= mostSeconds) return seconds;
  throw new Problem(
    400,
    'BadRequest',
    `seconds must be a number from 1 to ${mostSeconds}: the validity of the address`,
  );
};

/** Handles POST. Throws a Problem. A signed URL cannot create another one: its token is only for downloads until it expires. */
export const makeLink = async (
  deps: ExchangeDeps,
  request: Request,
  name: TargetName,
  standard: ExportFormat,
): Promise<Response> => {
  const caller = await authenticate(request, deps);
  if (caller.by === 'token')
    throw new Problem(403, 'Forbidden', 'a token of the cluster is needed to create an address');
  await permit(deps.kube, caller, 'download', name);
  const asked = new URL(request.url);
  const { format, compression, level } = formOf(asked.searchParams, standard);
  const iat = Math.floor(deps.now() / 1000);
  const exp = iat + secondsOf(asked.searchParams);
  const claims = { sub: caller.requester.username, verb: 'download', target: targetText(name), iat, exp } as const;
  const url = new URL(`${publicUrlOf(request, deps.publicUrl)}/downloads/${targetText(name)}`);
  // By default the format depends on the file.
  if (['format', 'compression', 'level'].some((word) => asked.searchParams.has(word))) {
    url.searchParams.set('format', format);
    url.searchParams.set('compression', compression);
  }
  if (level !== undefined) url.searchParams.set('level', String(level));
  url.searchParams.set('token', signToken(await deps.keys.signing(), claims));
  const expires = new Date(exp * 1000).toISOString();
  return new Response(JSON.stringify({ url: url.href, expires }), {
    status: 201,
    headers: { 'content-type': 'application/json', location: url.href, 'cache-control': 'no-store' },
  });
};
