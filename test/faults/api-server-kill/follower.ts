// A watch that survives restarts of the server: it resumes from the last version it received, or starts over when the server requires it.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventType, Ledger, ShownEvent } from '#test/faults/api-server-kill/ledger.ts';
import { type ConfigMap, collection, selector, toShown } from '#test/faults/api-server-kill/writers.ts';
import type { Http, OpenWatch } from '#test/support/api-server/http.ts';

/** Milliseconds within which a watch must have received everything. */
const backOff = 60_000;

export interface Follower {
  /** Resumes from its position; resolves when everything so far was received and compared. Continues until the server is killed. */
  readonly follow: (http: Http) => Promise<void>;
  /** Resolves when the last watch has ended. */
  readonly ended: () => Promise<void>;
  readonly counts: Readonly<Record<'resumed' | 'expired', number>>;
}

interface Line {
  readonly type: EventType | 'ERROR';
  readonly object: ConfigMap & { readonly code?: number };
}

export const createFollower = (ledger: Ledger): Follower => {
  const counts = { resumed: 0, expired: 0 };
  let cursor = 0;
  let events: ShownEvent[] = [];
  let isExpired = false;
  let watch: OpenWatch | undefined;

  const onLine = (text: string): void => {
    const { type, object } = JSON.parse(text) as Line;
    if (type === 'ERROR' && object.code === 410) isExpired = true;
    else if (type === 'ERROR') ledger.report(`the watch ended with ${text}`);
    else {
      const event = { ...toShown(object), type };
      cursor = event.version;
      events.push(event);
    }
  };

  /** Opens at `cursor` and waits for the event of a write made now: all earlier events have been received then. */
  const open = async (http: Http): Promise<void> => {
    isExpired = false;
    watch = await http.watch(`${collection}?watch=1&${selector}&resourceVersion=${cursor}`, onLine);
    const mark = await writeMark(http);
    const deadline = Date.now() + backOff;
    while (!isExpired && events.at(-1)?.version !== mark) {
      if (Date.now() > deadline) throw new Error(`the watch from ${cursor} does not show version ${mark}`);
      await sleep(2);
    }
    events = events.filter(({ name }) => name !== markName);
  };

  const begin = async (http: Http): Promise<void> => {
    ledger.skipEvents();
    events = [];
    cursor = await writeMark(http);
    await open(http);
  };

  return {
    counts,
    follow: async (http) => {
      if (cursor === 0) await begin(http);
      else await open(http);
      counts[isExpired ? 'expired' : 'resumed'] += 1;
      if (isExpired) await begin(http);
      ledger.checkEvents(events);
      events = [];
    },
    ended: async () => watch?.ended,
  };
};

/** An object whose writes are recorded in no ledger. */
export const markName = 'mark';

/** Returns the version of the write. */
const writeMark = async (http: Http): Promise<number> => {
  const body = { metadata: { name: markName, labels: { kill: 'me' } }, data: { id: randomUUID(), text: '' } };
  const put = await http.call('PUT', `${collection}/${markName}`, body);
  const { status, text } = put.status === 404 ? await http.call('POST', collection, body) : put;
  if (status !== 200 && status !== 201) throw new Error(`the mark was answered with ${status}: ${text}`);
  return toShown(JSON.parse(text) as ConfigMap).version;
};
