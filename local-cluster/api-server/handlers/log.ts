// `kubectl logs`: the output of a container, read from the file that its runner writes.
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiObject, fieldsAt, listAt, textAt } from '../objects/object.ts';
import { badRequest, failure } from '../status/status.ts';
import type { Call } from './call.ts';
import { getObject } from './get.ts';

/** Milliseconds between reads while following. */
const lookMs = 250;
const chunkBytes = 64 * 1024;

export const handleLog = async (call: Call): Promise<Response> => {
  const pod = getObject(call);
  const query = new URL(call.request.url).searchParams;
  const names = containersOf(pod);
  const container = query.get('container') ?? names[0] ?? '';
  if (!names.includes(container)) {
    throw badRequest(`container ${container} is not valid for pod ${call.path.name}`);
  }
  const file = call.api.containerLog?.(pod.metadata.uid ?? '', container);
  if (file === undefined) {
    throw failure({ code: 404, reason: 'NotFound', message: `the logs of pod "${call.path.name}" are not kept here` });
  }
  const obstacle = waitingReasonOf(pod, container);
  if (obstacle !== undefined) {
    throw badRequest(`container "${container}" in pod "${call.path.name}" is waiting to start: ${obstacle}`);
  }
  const text = await readFrom(file, 0);
  const shown = lastLines(text, query.get('tailLines'));
  const body = query.get('follow') === 'true' ? follow(call, file, { shown, offset: text.length }) : shown;
  return new Response(body, { headers: { 'content-type': 'text/plain' } });
};

const containersOf = (pod: ApiObject): readonly string[] =>
  listAt(fieldsAt(pod, 'spec'), 'containers').map((container) => textAt(container, 'name') ?? '');

const waitingReasonOf = (pod: ApiObject, container: string): string | undefined => {
  const status = listAt(fieldsAt(pod, 'status'), 'containerStatuses').find((one) => one['name'] === container);
  return status === undefined ? 'PodInitializing' : textAt(fieldsAt(fieldsAt(status, 'state'), 'waiting'), 'reason');
};

/** Everything after `offset`; nothing while the file does not exist yet. */
const readFrom = async (file: string, offset: number): Promise<Buffer> => {
  try {
    await using handle = await open(file, 'r');
    const parts: Buffer[] = [];
    for (let at = offset; ;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(chunkBytes), 0, chunkBytes, at);
      if (bytesRead === 0) return Buffer.concat(parts);
      parts.push(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
};

const lastLines = (text: Buffer, count: string | null): Buffer => {
  if (count === null) return text;
  const lines = text.toString().replace(/\n$/, '').split('\n');
  const kept = Number(count) === 0 ? [] : lines.slice(-Number(count));
  return Buffer.from(kept.map((line) => `${line}\n`).join(''));
};

/** Continues until the pod has ended and all of it was sent, or the client disconnects. */
const follow = (
  call: Call,
  file: string,
  { shown, offset }: { readonly shown: Buffer; readonly offset: number },
): ReadableStream<Uint8Array> => {
  let at = offset;
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(shown)),
    pull: async (controller) => {
      for (;;) {
        const isOver = hasEnded(call);
        const more = await readFrom(file, at);
        at += more.length;
        if (more.length > 0) return controller.enqueue(new Uint8Array(more));
        if (isOver) return controller.close();
        await sleep(lookMs);
      }
    },
  });
};

const hasEnded = (call: Call): boolean => {
  try {
    return ['Succeeded', 'Failed'].includes(textAt(fieldsAt(getObject(call), 'status'), 'phase') ?? '');
  } catch {
    // The pod was deleted.
    return true;
  }
};
