// Common parts of the cases of `apply`.
import { ok } from 'node:assert/strict';
import type { Answer, CaseContext } from '#local-cluster/conformance/suite/case.ts';
import { itemsAt, type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';
import { apply, type Body, core } from '#local-cluster/conformance/topics/objects.ts';

export const managers = (object: JsonValue): string =>
  itemsAt(object, 'metadata.managedFields')
    .map((entry) => `${textAt(entry, 'manager')}/${textAt(entry, 'operation')}`)
    .toSorted()
    .join(' ');

export const applied = async (t: CaseContext, path: string, body: Body, query?: string): Promise<Answer> => {
  const answer = await apply(t, path, body, query);
  ok(answer.status < 300, JSON.stringify(answer.body));
  return answer;
};

export const mapPath = async (t: CaseContext): Promise<string> => core(await t.namespace(), 'configmaps', 'a');

export const service = (ports: readonly Body[]): Body => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'a' },
  spec: { selector: { app: 'a' }, ports },
});
