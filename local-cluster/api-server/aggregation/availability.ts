// Checks APIServices: reports in their status whether their servers answer, and caches which resources those servers serve.
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiObject, type Fields, fieldsAt, listAt } from '../objects/object.ts';
import type { Store } from '../store/store.ts';
import { type Connector } from './connect.ts';
import { type Extension, allExtensions, apiServiceCollection, conditionOf, toExtension } from './extension.ts';

/** What an extension server reports about itself. */
export interface Described {
  readonly extension: Extension;
  /** Its APIResourceList; undefined until it answered once. */
  readonly resources: Fields | undefined;
  /** Its OpenAPI v3 document; undefined if it has none. */
  readonly openApi: Fields | undefined;
}

export interface Availability {
  readonly described: () => readonly Described[];
  /** Counts changes of the descriptions. */
  readonly revision: () => number;
  readonly close: () => void;
}

interface Verdict {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

const passed: Verdict = { status: 'True', reason: 'Passed', message: 'all checks passed' };
const local: Verdict = { status: 'True', reason: 'Local', message: 'Local APIServices are always available' };

/** The user for discovery requests; the real aggregator uses the same. */
const aggregator = { username: 'system:kube-aggregator', groups: ['system:masters'] };

const checkMs = 5_000;
/** Intervals between checks of a server that answers, and of one that does not. */
const pauses = { good: 30_000, bad: 1_000 };

export const startAvailability = (store: Store, connector: Connector, clock: () => Date): Availability => {
  const stop = new AbortController();
  const known = new Map<string, Omit<Described, 'extension'>>();
  /** One loop for each APIService; a change wakes it. */
  const wakes = new Map<string, () => void>();
  let revision = 0;

  const readJson = async (
    extension: Extension,
    path: string,
  ): Promise<{ status: number; body: Fields | undefined }> => {
    const answer = await connector.ask(extension, {
      method: 'GET',
      path,
      headers: { accept: 'application/json' },
      user: aggregator,
      signal: AbortSignal.timeout(checkMs),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) return { status: answer.statusCode, body: undefined };
    return { status: 200, body: JSON.parse(text) as Fields };
  };

  const look = async (extension: Extension): Promise<Verdict> => {
    const missing = connector.missing(extension);
    if (missing !== undefined) return { status: 'False', ...missing };
    const { group, version, service } = extension;
    const path = `/apis/${group}/${version}`;
    try {
      const { status, body } = await readJson(extension, path);
      if (body === undefined)
        throw new Error(
          `bad status from https://${service.name}.${service.namespace}.svc:${service.port}${path}: ${status}`,
        );
      const openApi = await readJson(extension, `/openapi/v3${path}`).catch(() => ({ body: undefined }));
      remember(extension.name, { resources: body, openApi: openApi.body });
      return passed;
    } catch (error) {
      const message = `failing or missing response from https://${service.name}.${service.namespace}.svc:${service.port}${path}: ${error instanceof Error ? error.message : String(error)}`;
      return { status: 'False', reason: 'FailedDiscoveryCheck', message };
    }
  };

  const remember = (name: string, said: Omit<Described, 'extension'>): void => {
    const before = known.get(name);
    known.set(name, said);
    if (JSON.stringify(before) !== JSON.stringify(said)) revision += 1;
  };

  const write = (name: string, verdict: Verdict): void => {
    const entry = store.get({ collection: apiServiceCollection, namespace: '', name });
    if (entry === undefined) return;
    const object = entry.object();
    const before = conditionOf(object);
    if (before?.['status'] === verdict.status && before['message'] === verdict.message) return;
    const since = before?.['status'] === verdict.status ? before['lastTransitionTime'] : timeOf(clock);
    const others = listAt(fieldsAt(object, 'status'), 'conditions').filter((one) => one['type'] !== 'Available');
    const condition = { type: 'Available', ...verdict, lastTransitionTime: since };
    object['status'] = { ...fieldsAt(object, 'status'), conditions: [...others, condition] };
    store.replace(entry, entry.version, object);
  };

  const current = (name: string): ApiObject | undefined =>
    store.get({ collection: apiServiceCollection, namespace: '', name })?.object();

  const follow = async (name: string): Promise<void> => {
    while (!stop.signal.aborted) {
      // Before the check: a change during the check causes another one at once.
      const wake = new AbortController();
      wakes.set(name, () => wake.abort());
      const object = current(name);
      if (object === undefined) return;
      const extension = toExtension(object);
      const verdict = extension === undefined ? local : await look(extension);
      if (stop.signal.aborted) return;
      write(name, verdict);
      await untilNext(verdict, wake.signal);
    }
  };

  const untilNext = async ({ status }: Verdict, woken: AbortSignal): Promise<void> => {
    const signal = AbortSignal.any([woken, stop.signal]);
    await sleep(status === 'True' ? pauses.good : pauses.bad, undefined, { signal, ref: false }).catch(() => undefined);
  };

  const begin = (name: string): void => {
    wakes.set(name, () => undefined);
    void follow(name).finally(() => {
      wakes.delete(name);
      if (known.delete(name)) revision += 1;
    });
  };

  const onChange = (name: string): void => {
    const wake = wakes.get(name);
    if (wake === undefined) begin(name);
    else wake();
  };

  /** Our own status writes wake the loop once; the second check changes nothing. */
  const specOf = (object: ApiObject | undefined): string => JSON.stringify(object?.['spec']);
  const unsubscribe = [
    store.subscribe(apiServiceCollection, (change) => {
      if (change.type !== 'MODIFIED' || specOf(change.previous()) !== specOf(change.object())) onChange(change.name);
    }),
    store.subscribe('services', () => [...wakes.values()].forEach((wake) => wake())),
  ];
  for (const entry of store.page({ collection: apiServiceCollection, limit: 1000 }).entries) begin(entry.name);
  return {
    described: () =>
      allExtensions(store).map((extension) => {
        const { resources, openApi } = known.get(extension.name) ?? {};
        return { extension, resources, openApi };
      }),
    revision: () => revision,
    close: () => {
      stop.abort();
      unsubscribe.forEach((end) => end());
    },
  };
};

const timeOf = (clock: () => Date): string => `${clock().toISOString().slice(0, 19)}Z`;
