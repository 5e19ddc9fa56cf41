// Small objects and paths for the cases of all topics.
import { strictEqual } from 'node:assert/strict';
import type { Answer, CaseContext } from '#local-cluster/conformance/suite/case.ts';
import { itemsAt, type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';

export type Body = Record<string, unknown>;

/** The response, when it has the expected status; otherwise fails with the body. */
export const expectStatus = (answer: Answer, status: number): Answer => {
  strictEqual(answer.status, status, `status ${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`);
  return answer;
};

/** The parts of an error that a client sees. */
export const failureOf = ({ status, body }: Answer): Body => ({ status, body });

export const core = (namespace: string, plural: string, name?: string): string =>
  `/api/v1/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;

export const grouped = (groupVersion: string, namespace: string, plural: string, name?: string): string =>
  `/apis/${groupVersion}/namespaces/${namespace}/${plural}${name === undefined ? '' : `/${name}`}`;

export const configMap = (name: string, data?: Body, metadata: Body = {}): Body => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  ...(data === undefined ? {} : { data }),
});

export const pod = (name: string, spec: Body = {}): Body => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'example.com/main' }], ...spec },
});

/** Creates an object in a collection and returns it as stored. */
export const create = async (t: CaseContext, path: string, body: Body): Promise<JsonValue> =>
  expectStatus(await t.call('POST', path, { body }), 201).body;

export const get = async (t: CaseContext, path: string): Promise<JsonValue> =>
  expectStatus(await t.call('GET', path), 200).body;

export const mergePatch = (t: CaseContext, path: string, body: unknown): Promise<Answer> =>
  t.call('PATCH', path, { body, contentType: 'application/merge-patch+json' });

export const jsonPatch = (t: CaseContext, path: string, body: unknown): Promise<Answer> =>
  t.call('PATCH', path, { body, contentType: 'application/json-patch+json' });

export const strategicPatch = (t: CaseContext, path: string, body: unknown): Promise<Answer> =>
  t.call('PATCH', path, { body, contentType: 'application/strategic-merge-patch+json' });

export const apply = (t: CaseContext, path: string, body: unknown, query = 'fieldManager=tester'): Promise<Answer> =>
  t.call('PATCH', `${path}?${query}`, { body, contentType: 'application/apply-patch+yaml' });

export const namesOf = (list: JsonValue): readonly string[] =>
  itemsAt(list).map((item) => textAt(item, 'metadata.name'));

/** Polls until the check succeeds; fails after 90 s with the last state. The garbage collector discovers new kinds only every 30 s. */
export const eventually = async <T>(what: string, read: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> => {
  const deadline = Date.now() + 90_000;
  for (;;) {
    const seen = await read();
    if (holds(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`${what}: not within 90 s; last seen ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/** Resolves when a path answers 404. */
export const eventuallyGone = async (t: CaseContext, path: string): Promise<void> => {
  await eventually(
    `${path} is gone`,
    async () => (await t.call('GET', path)).status,
    (status) => status === 404,
  );
};
