// Streams a file of a volume from the Job that has mounted it to the client. Nothing is stored in between.
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, request } from 'undici';
import { authenticate, permit } from '#shared/exchange/access/caller.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import {
  dispositionOf,
  endingFor,
  fileNameOf,
  formOf,
  queryOf,
  standardFor,
} from '#shared/exchange/download/file-name.ts';
import { type DownloadVolume, findVolume, openServing } from './serving.ts';
import { toWeb } from '#shared/exchange/http/agent.ts';
import { unhurriedAgent } from '#shared/exchange/http/agent.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { downloadFromLonghorn } from '#shared/exchange/longhorn.ts';
import { findTarget } from '#shared/exchange/target.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import type { ExportFormat } from '#shared/transfer/export/format.ts';

/** Request headers that are forwarded to the pod. */
const asked = ['range', 'if-range', 'if-match', 'if-none-match'];
/** Response headers that are forwarded to the client. */
const forwarded = ['etag', 'content-type', 'content-length', 'content-range', 'accept-ranges'];

/** A pod that has just started, or is terminating, accepts no connections. */
const tries = 20;
const pauseMs = 300;

type Answer = Dispatcher.ResponseData;

const headersFrom = (names: readonly string[], read: (name: string) => unknown): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = read(name);
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );

const notAnswering = (): Problem =>
  new Problem(503, 'NotReady', 'the pod that serves the volume does not answer; try again', {
    headers: { 'retry-after': '5' },
  });

const askPod = async (
  deps: ExchangeDeps,
  volume: DownloadVolume,
  incoming: Request,
  form: ExportFormat,
): Promise<Answer> => {
  const { signal } = incoming;
  for (let attempt = 1; ; attempt++) {
    const { url, token } = await openServing(deps, volume, signal);
    try {
      return await request(`${url}/file?${queryOf(form)}`, {
        method: incoming.method === 'HEAD' ? 'HEAD' : 'GET',
        dispatcher: unhurriedAgent(),
        signal,
        headers: {
          authorization: `Bearer ${token}`,
          ...headersFrom(asked, (name) => incoming.headers.get(name) ?? undefined),
        },
      });
    } catch {
      if (signal.aborted || attempt === tries) {
        throw notAnswering();
      }
      await sleep(pauseMs, undefined, { signal });
    }
  }
};

const refusalOf = async ({ statusCode, body }: Answer): Promise<Problem> => {
  // The pod rejects our token, not the client's: the new keys have not reached it yet.
  if (statusCode === 401) {
    await body.dump();
    return notAnswering();
  }
  const problem = (await body.json().catch(() => ({}))) as { reason?: string; message?: string };
  return new Problem(statusCode, problem.reason ?? 'Failed', problem.message ?? 'the volume cannot be downloaded', {
    headers: { 'retry-after': '5' },
  });
};

const passedOn = [200, 206, 304, 412, 416];

/** Whether these are the last bytes of the file: a client may download it in ranges. */
const isEnd = (range: unknown): boolean => {
  const [, last, size] = /-(\d+)\/(\d+)$/.exec(typeof range === 'string' ? range : '') ?? [];
  return last === undefined || Number(last) + 1 === Number(size);
};

/** `onWhole`: called after the last byte was sent. */
async function* until(body: AsyncIterable<Buffer>, onWhole: () => Promise<void>): AsyncGenerator<Buffer> {
  yield* body;
  await onWhole();
}

export interface DownloadOptions {
  /** Default if the client requests no format. */
  readonly standard: ExportFormat;
  readonly onWhole?: () => Promise<void>;
}

/** Handles GET and HEAD. Throws a Problem. */
export const download = async (
  deps: ExchangeDeps,
  incoming: Request,
  name: TargetName,
  { standard, onWhole }: DownloadOptions,
): Promise<Response> => {
  await permit(deps.kube, await authenticate(incoming, deps), 'download', name);
  const target = await findTarget(deps.kube, name);
  const { backingImage } = target;
  if (backingImage !== undefined) {
    const isPackedByDefault = standard.compression !== 'none';
    return downloadFromLonghorn(deps, incoming, { target: { ...target, backingImage }, isPackedByDefault });
  }
  const { sourceFormat } = target;
  const form = formOf(new URL(incoming.url).searchParams, standardFor(sourceFormat, standard));
  const volume = await findVolume(deps.kube, target);
  const answer = await askPod(deps, volume, incoming, form);
  const { statusCode: status, headers, body } = answer;
  if (!passedOn.includes(status)) throw await refusalOf(answer);
  const extension = headers['x-file-extension'];
  const ending = endingFor(sourceFormat, typeof extension === 'string' ? extension : form.format);
  const fileName = fileNameOf(target.displayName, ending);
  const answered = {
    ...headersFrom(forwarded, (header) => headers[header]),
    'content-disposition': dispositionOf(fileName),
    'cache-control': 'private',
    // Disables buffering in proxies, which would store gigabytes on disk.
    'x-accel-buffering': 'no',
  };
  if (incoming.method === 'HEAD' || (status !== 200 && status !== 206)) {
    await body.dump();
    return new Response(null, { status, headers: answered });
  }
  const bytes =
    onWhole === undefined || !isEnd(headers['content-range'])
      ? body
      : Readable.from(until(body, onWhole), { objectMode: false });
  return new Response(toWeb(bytes), { status, headers: answered });
};
