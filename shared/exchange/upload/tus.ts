// tus 1.0 at /files/<plural>/<namespace>/<name>. The protocol is that of @tus/server, which is loaded when somebody speaks it.
import { authenticate } from '#shared/exchange/access/caller.ts';
import type { MemoryLocker } from '@tus/server';
import { permit } from '#shared/exchange/access/permit.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
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
    const server = new Server({
      path: `/files/${targetText(name)}`,
      relativeLocation: true,
      datastore: new UploadStore(deps, name, request.signal),
      maxSize: deps.mostBytes,
      allowedOrigins: (origin) => deps.corsOrigins.includes('*') || deps.corsOrigins.includes(origin),
      locker: await locker(),
      namingFunction: (asked) => newUploadId(Number(asked.headers.get('upload-length') ?? 0)),
      onResponseError: (_asked, error) => {
        if ('status_code' in error) return undefined;
        const { status, reason, message } = toProblem(error);
        if (!(error instanceof Problem)) deps.log.error('an upload request failed', { error });
        return { status_code: status, body: JSON.stringify({ reason, message }) };
      },
    });
    return server.handleWeb(request);
  };
};

const loadLocker = () => {
  let locker: Promise<MemoryLocker> | undefined;
  return () => (locker ??= import('@tus/server').then(({ MemoryLocker }) => new MemoryLocker()));
};
