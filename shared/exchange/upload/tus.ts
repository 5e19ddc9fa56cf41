// tus 1.0 at /files/<plural>/<namespace>/<name>. The protocol is that of @tus/server, which is loaded when somebody speaks it.
import { authenticate } from '#shared/exchange/access/caller.ts';
import type { MemoryLocker } from '@tus/server';
import { permit } from '#shared/exchange/access/permit.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { tooLarge } from '#shared/exchange/upload/deliver.ts';
import { prefixOf, publicUrlOf } from '#shared/exchange/http/public-url.ts';
import { Problem, toProblem } from '#shared/exchange/http/problem.ts';
import { type TargetName, targetText } from '#shared/exchange/target-name.ts';

/** `deps` of one process share their locks: of two requests for one upload the later one wins. */
export const createTus = (deps: ExchangeDeps) => {
  const locker = loadLocker();

  return async (request: Request, name: TargetName): Promise<Response> => {
    await permit(deps.kube, await authenticate(request, deps), 'upload', name);
    const [{ Server }, { UploadStore, newUploadId }] = await Promise.all([
      import('@tus/server'),
      import('#shared/exchange/upload/tus-store.ts'),
    ]);
    const { pathname } = new URL(request.url);
    const store = new UploadStore(deps, name, request.signal);
    const server = new Server({
      // Below a prefix as well.
      path: `${pathname.slice(0, pathname.indexOf('/files/'))}/files/${targetText(name)}`,
      // Without a host: however a client came, it comes back that way.
      generateUrl: (asked, { id }) => `${prefixOf(publicUrlOf(asked, deps.publicUrl))}/files/${targetText(name)}/${id}`,
      datastore: store,
      maxSize: deps.mostBytes,
      allowedOrigins: (origin) => deps.corsOrigins.includes('*') || deps.corsOrigins.includes(origin),
      locker: await locker(),
      namingFunction: (asked) => newUploadId(Number(asked.headers.get('upload-length') ?? 0)),
      onResponseError: (_asked, error) => {
        // Theirs say what is wrong; of this one people are to know what to do.
        if ('status_code' in error && error.status_code !== 413) return undefined;
        if ('status_code' in error) return toAnswer(tooMuch(request, deps.mostBytes));
        if (!(error instanceof Problem)) deps.log.error('an upload request failed', { error });
        return toAnswer(toProblem(error));
      },
    });
    const answer = await asJson(await server.handleWeb(request));
    // The bytes are all there, and the disk is not: there is more to be asked for.
    if (store.isUnfinished()) answer.headers.set('retry-after', '5');
    return answer;
  };
};

/** What is announced is held against the most there may be, what comes against what was announced. */
const tooMuch = (request: Request, mostBytes: number): Problem => {
  const announced = Number(request.headers.get('upload-length') ?? 0);
  if (announced > mostBytes) return tooLarge(String(announced), mostBytes);
  const message =
    'more bytes come than Upload-Length announced: begin a new upload with the length of the whole file, or send what belongs at Upload-Offset alone';
  return new Problem(413, 'RequestEntityTooLarge', message);
};

const toAnswer = ({ status, reason, message }: Problem) => ({
  status_code: status,
  body: JSON.stringify({ reason, message }),
});

/** The library names no type. */
const asJson = async (answer: Response): Promise<Response> => {
  if (answer.status < 400 || answer.body === null) return answer;
  const body = await answer.text();
  const headers = new Headers(answer.headers);
  if (body.startsWith('{')) headers.set('content-type', 'application/json');
  return new Response(body, { status: answer.status, headers });
};

const loadLocker = () => {
  let locker: Promise<MemoryLocker> | undefined;
  return () => (locker ??= import('@tus/server').then(({ MemoryLocker }) => new MemoryLocker()));
};
