// Common parts of the cases of `crd-schema`.
import type { CaseContext } from '#local-cluster/conformance/suite/case.ts';
import { at, type JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import { type Body, create, failureOf } from '#local-cluster/conformance/topics/objects.ts';

export const objectOf = (properties: Body, more: Body = {}): Body => ({ type: 'object', properties, ...more });

/** Creates one widget with this `spec` under this schema of `spec`; returns the stored `spec`. */
export const stored = async (t: CaseContext, schema: Body, spec: unknown): Promise<JsonValue> => {
  const widgets = await createWidgets(t, { properties: { spec: schema } });
  return at(await create(t, widgets.path(await t.namespace()), widgets.widget('a', { spec })), 'spec');
};

/** Tries each `spec` under one schema; returns the responses of the server. */
export const verdicts = async (
  t: CaseContext,
  schema: Body,
  specs: Readonly<Record<string, unknown>>,
): Promise<void> => {
  const widgets = await createWidgets(t, { properties: { spec: schema } });
  const path = `${widgets.path(await t.namespace())}?dryRun=All`;
  for (const [label, spec] of Object.entries(specs)) {
    const answer = await t.call('POST', path, { body: widgets.widget('a', { spec }) });
    t.same(label, answer.status === 201 ? { status: 201, spec: at(answer.body, 'spec') } : failureOf(answer));
  }
};

export const string = { type: 'string' };
export const integer = { type: 'integer' };
