// CDI's upload proxy: what `virtctl image-upload` and its like speak. Statuses and words are the original's, where it has some.
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

/** Who says that it made a token: a CDI that is installed gives its own. */
const isOfCdi = (payload: string): boolean =>
  /"iss" *: *"cdi-apiserver"/.test(Buffer.from(payload, 'base64url').toString());

const ofCdi = (): Problem =>
  new Problem(
    401,
    'Unauthorized',
    'this token is of the CDI that is installed, which takes the file itself: send it to its upload proxy (status.uploadProxyURL of its CDIConfig)',
  );

/** Throws a Problem (401) for all but a good token for an upload. Looks at headers alone, before any of the body. */
const targetOfToken = async (deps: ExchangeDeps, request: Request): Promise<TargetName> => {
  const [, payload] =
    /^Bearer +[^.\s]+\.([^.\s]+)\.\S+$/i.exec(request.headers.get('authorization')?.trim() ?? '') ?? [];
  if (payload === undefined) throw unauthorized('the request has no upload token');
  const caller = await authenticate(request, deps).catch((error: unknown) => {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    throw isOfCdi(payload) ? ofCdi() : unauthorized('this token is not good here, or has expired');
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

/** What takes a file, now or once it is started again. Throws a Problem (503). */
const findOpen = async (deps: ExchangeDeps, name: TargetName): Promise<ExchangeTarget> => {
  const target = await findTarget(deps.kube, name).catch((error: unknown) => {
    const isMissing = error instanceof Problem && error.status === 404;
    throw isMissing ? text(503, `rejecting Upload Request for PVC ${name.name} that doesn't exist`) : error;
  });
  // What an earlier file made fail is started again for this one.
  if (target.stage === 'open' || target.stage === 'unoffered' || target.stage === 'failed') return target;
  throw text(503, rejections[target.stage](name.name));
};

const noArchive = (claim: string): string =>
  `rejecting upload request for PVC ${claim} - upload content-type archive is invalid: it takes a disk image; make the volume with contentType: archive for a tar archive`;

/** Seconds: who does not ask for less wants to know how it ends. */
const anyTime = 24 * 3600;

const noCapacity = ['ImageTooLarge', 'TargetFull'];

/** What the client hears of it; throws a Problem for all but a file that arrived. 503 where the Job was ended and another takes the file. */
export const answerOf = (sent: Sent, name: Pick<TargetName, 'name'>): Response => {
  if ([200, 204, arrivedStatus].includes(sent.status)) return new Response(null, { status: 200 });
  if (sent.status === 423) throw text(503, `rejecting Upload Request for PVC ${name.name}: another upload is running`);
  if (sent.status === 409) throw text(409, `PVC ${name.name} has been uploaded already`);
  const status = noCapacity.includes(sent.reason) ? 400 : sent.status === 503 ? 503 : 500;
  throw text(status, `Saving stream failed: ${sent.message}`);
};

/** Every Problem of this protocol is text; the original has no word for what is too large. */
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
    // As with the original, an archive may come by any of the paths; what it becomes is the volume's word.
    const target = await findOpen(deps, name);
    if (path === 'upload-archive' && target.holdsFiles !== true) throw text(503, noArchive(name.name));
    const file = await fileOf(request, path.startsWith('upload-form') ? 'form' : 'raw');
    // What is acknowledged earlier is in a claim of its own, from which any pod can write the disk.
    const waits = isAsync ? deps.answerSeconds : anyTime;
    return answerOf(await deliver(deps, { target, file, waits, signal: request.signal }), name);
  } catch (error) {
    throw asText(error);
  }
};
