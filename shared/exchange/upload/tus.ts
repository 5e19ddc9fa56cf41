// tus 1.0 at /files/<plural>/<namespace>/<name>. The protocol is that of @tus/server, which is loaded on first use.
import { authenticate, permit } from '#shared/exchange/access/caller.ts';
import type { MemoryLocker } from '@tus/server';
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
      // Also below a prefix.
      path: `${pathname.slice(0, pathname.indexOf('/files/'))}/files/${targetText(name)}`,
      // Without a host: the client returns by the same route.
      generateUrl: (asked, { id }) => `${prefixOf(publicUrlOf(asked, deps.publicUrl))}/files/${targetText(name)}/${id}`,
      datastore: store,
      maxSize: deps.mostBytes,
      allowedOrigins: (origin) => deps.corsOrigins.includes('*') || deps.corsOrigins.includes(origin),
      locker: await locker(),
      namingFunction: (asked) => newUploadId(Number(asked.headers.get('upload-length') ?? 0)),
      onResponseError: (_asked, error) => {
        // The library's errors are clear; this one gets a message that says what to do.
        if ('status_code' in error && error.status_code !== 413) return undefined;
        if ('status_code' in error) return toAnswer(tooMuch(request, deps.mostBytes));
        if (!(error instanceof Problem)) deps.log.error('an upload request failed', { error });
        return toAnswer(toProblem(error));
      },
    });
    const answer = await asJson(await server.handleWeb(request));
    // All bytes have arrived but the disk is not complete: the client should ask again.
    if (store.isUnfinished()) answer.headers.set('retry-after', '5');
    return answer;
  };
};

/** The announced length is checked against the limit, the received bytes against the announced length. */
const tooMuch = (request: Request, mostBytes: number): Problem => {
  const announced = Number(request.headers.get('upload-length') ?? 0);
  if (announced > mostBytes) return tooLarge(String(announced), mostBytes);
  const message =
    'more bytes arrived than Upload-Length allows: start a new upload with the length of the whole file, or send only the bytes from Upload-Offset on';
  return new Problem(413, 'RequestEntityTooLarge', message);
};

const toAnswer = ({ status, reason, message }: Problem) => ({
  status_code: status,
  body: JSON.stringify({ reason, message }),
});

/** The library sets no content type. */
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
