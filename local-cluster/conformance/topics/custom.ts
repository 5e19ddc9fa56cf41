// Custom resources of cases: each case has a separate API group.
import type { CaseContext } from '#local-cluster/conformance/suite/case.ts';
import { at, itemsAt, type JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { type Body, eventually, expectStatus } from '#local-cluster/conformance/topics/objects.ts';

export const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

export interface CustomKind {
  readonly group: string;
  readonly crdName: string;
  readonly apiVersion: string;
  /** Collection in a namespace, or an object of it. */
  readonly path: (namespace: string, name?: string) => string;
  readonly widget: (name: string, content?: Body, metadata?: Body) => Body;
}

export interface CrdOptions {
  /** `openAPIV3Schema.properties`. */
  readonly properties?: Body;
  /** Merged into the root schema. */
  readonly root?: Body;
  /** Merged into the only version. */
  readonly version?: Body;
  /** Merged into the spec. */
  readonly spec?: Body;
  readonly scope?: 'Namespaced' | 'Cluster';
}

/** A CRD manifest of kind Widget in the case's own group. */
export const widgetCrd = (t: CaseContext, { properties, root, version, spec, scope }: CrdOptions = {}): Body => {
  const group = groupOf(t);
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: properties ?? { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      ...root,
    },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: scope ?? 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [{ name: 'v1', served: true, storage: true, schema, ...version }],
      ...spec,
    },
  };
};

export const groupOf = (t: CaseContext): string => `${t.id}.example.com`;

/** Creates the CRD and waits until its objects can be listed. */
export const createWidgets = async (t: CaseContext, options: CrdOptions = {}): Promise<CustomKind> => {
  const group = groupOf(t);
  const crdName = `widgets.${group}`;
  expectStatus(await t.call('POST', crdPath, { body: widgetCrd(t, options) }), 201);
  t.cleanup(() => t.call('DELETE', `${crdPath}/${crdName}`));
  await established(t, crdName);
  const kind = kindOf(group);
  const scoped = options.scope === 'Cluster' ? `/apis/${group}/v1/widgets` : kind.path('default');
  await served(t, scoped);
  return kind;
};

export const kindOf = (group: string): CustomKind => ({
  group,
  crdName: `widgets.${group}`,
  apiVersion: `${group}/v1`,
  path: (namespace, name) => `/apis/${group}/v1/namespaces/${namespace}/widgets${name === undefined ? '' : `/${name}`}`,
  widget: (name, content = {}, metadata = {}) => ({
    apiVersion: `${group}/v1`,
    kind: 'Widget',
    metadata: { name, ...metadata },
    ...content,
  }),
});

export const conditionOf = (crd: JsonValue, type: string): JsonValue =>
  itemsAt(crd, 'status.conditions').find((condition) => at(condition, 'type') === type);

export const established = (t: CaseContext, crdName: string): Promise<JsonValue> =>
  eventually(
    `${crdName} is established`,
    async () => (await t.call('GET', `${crdPath}/${crdName}`)).body,
    (crd) => at(conditionOf(crd, 'Established'), 'status') === 'True',
  );

/** Established is set a moment before every handler observes it. */
export const served = async (t: CaseContext, path: string): Promise<void> => {
  await eventually(
    `${path} is served`,
    async () => (await t.call('GET', path)).status,
    (status) => status === 200,
  );
};
