// CDI's upload proxy, the protocol of `virtctl image-upload` and similar clients. Statuses and messages are those of the original, if it has
// any.
import { authenticate } from '#shared/exchange/access/caller.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type ExchangeTarget, findTarget } from '#shared/exchange/target.ts';
import { type TargetName, parseTarget } from '#shared/exchange/target-name.ts';
import { deliver } from '#shared/exchange/upload/deliver.ts';
import { fileOf } from '#shared/exchange/upload/file-part.ts';
import { type Sent, arrivedStatus } from '#shared/exchange/upload/session.ts';

export const cdiPaths = ['upload', 'upload-async', 'upload-form', 'upload-form-async', 'upload-archive'] as const;
export type CdiPath = (typeof cdiPaths)[number];

const text = (status: number, message: string): Problem => new Problem(status, 'Rejected', message, { as: 'text' });
const unauthorized = (why: string): Problem =>
  new Problem(401, 'Unauthorized', `${why}: ask for one with an UploadTokenRequest of upload.cdi.kubevirt.io`, {
    headers: { 'www-authenticate': 'Bearer' },
  });

/** The issuer of the token: an installed CDI issues its own. */
const isOfCdi = (payload: string): boolean =>
  /"iss" *: *"cdi-apiserver"/.test(Buffer.from(payload, 'base64url').toString());

const ofCdi = (): Problem =>
  new Problem(
    401,
    'Unauthorized',
    'this token was issued by the installed CDI, which receives the file itself: send it to its upload proxy (status.uploadProxyURL of its CDIConfig)',
  );

/** Throws a Problem (401) unless the token is valid for an upload. Reads only headers, before any of the body. */
const targetOfToken = async (deps: ExchangeDeps, request: Request): Promise<TargetName> => {
  const [, payload] =
    /^Bearer +[^.\s]+\.([^.\s]+)\.\S+$/i.exec(request.headers.get('authorization')?.trim() ?? '') ?? [];
  if (payload === undefined) throw unauthorized('the request has no upload token');
  const caller = await authenticate(request, deps).catch((error: unknown) => {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    throw isOfCdi(payload) ? ofCdi() : unauthorized('this token is not valid here, or has expired');
  });
  const name = caller.by === 'token' && caller.claims.verb === 'upload' ? parseTarget(caller.claims.target) : undefined;
  if (name === undefined) throw unauthorized('this token is not for an upload');
  return name;
};

const rejections: Readonly<
  Record<Exclude<ExchangeTarget['stage'], 'open' | 'unoffered' | 'failed'>, (claim: string) => string>
> = {
  done: (claim) => `rejecting Upload Request for PVC ${claim} that already finished uploading`,
  'no-upload': (claim) => `rejecting Upload Request for PVC ${claim}: it is not an upload target`,
  theirs: (claim) =>
    `rejecting Upload Request for PVC ${claim}: the CDI that is installed fills it, send the file to its upload proxy`,
};

/** A target that accepts a file, now or after a restart. Throws a Problem (503). */
const findOpen = async (deps: ExchangeDeps, name: TargetName): Promise<ExchangeTarget> => {
  const target = await findTarget(deps.kube, name).catch((error: unknown) => {
    const isMissing = error instanceof Problem && error.status === 404;
    throw isMissing ? text(503, `rejecting Upload Request for PVC ${name.name} that doesn't exist`) : error;
  });
  // A target that failed with an earlier file is restarted for this one.
  if (target.stage === 'open' || target.stage === 'unoffered' || target.stage === 'failed') return target;
  throw text(503, rejections[target.stage](name.name));
};

const noArchive = (claim: string): string =>
  `rejecting upload request for PVC ${claim} - upload content-type archive is invalid: it takes a disk image; make the volume with contentType: archive for a tar archive`;

/** Seconds: by default the client waits for the result. */
const anyTime = 24 * 3600;

const noCapacity = ['ImageTooLarge', 'TargetFull'];

/** The answer for the client; throws a Problem unless the file has arrived. 503 if the Job ended and another one receives the file. */
export const answerOf = (sent: Sent, name: Pick<TargetName, 'name'>): Response => {
  if ([200, 204, arrivedStatus].includes(sent.status)) return new Response(null, { status: 200 });
  if (sent.status === 423) throw text(503, `rejecting Upload Request for PVC ${name.name}: another upload is running`);
  if (sent.status === 409) throw text(409, `PVC ${name.name} has been uploaded already`);
  const status = noCapacity.includes(sent.reason) ? 400 : sent.status === 503 ? 503 : 500;
  throw text(status, `Saving stream failed: ${sent.message}`);
};

/** Every Problem of this protocol is plain text; the original has no message for a file that is too large. */
const asText = (error: unknown): unknown =>
  error instanceof Problem && error.status !== 413 && (error.options.as ?? 'status') === 'status'
    ? new Problem(error.status, error.reason, error.message, { ...error.options, as: 'text' })
    : error;

export const cdiUpload = async (deps: ExchangeDeps, request: Request, path: CdiPath): Promise<Response> => {
  const isAsync = path.endsWith('-async');
  const name = await targetOfToken(deps, request);
  if (request.method === 'HEAD') return new Response(null, { status: isAsync ? 200 : 404 });
  if (request.method !== 'POST') throw text(404, 'POST the file');
  try {
    // As in the original, an archive may be sent to any of the paths; the volume determines its content type.
    const target = await findOpen(deps, name);
    if (path === 'upload-archive' && target.holdsFiles !== true) throw text(503, noArchive(name.name));
    const file = await fileOf(request, path.startsWith('upload-form') ? 'form' : 'raw');
    // An early answer is safe: the file is in a claim of its own, from which any pod can write the disk.
    const waits = isAsync ? deps.answerSeconds : anyTime;
    return answerOf(await deliver(deps, { target, file, waits, signal: request.signal }), name);
  } catch (error) {
    throw asText(error);
  }
};
