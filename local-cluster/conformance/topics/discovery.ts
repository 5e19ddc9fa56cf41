// What a client can discover about a server before it reads objects.
import { match, ok, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import {
  at,
  itemsAt,
  type JsonObject,
  type JsonValue,
  textAt,
  without,
} from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import { eventually, expectStatus, get } from '#local-cluster/conformance/topics/objects.ts';

/** The resources that the product and its tests use. Others may differ. */
const resources: Readonly<Record<string, readonly string[]>> = {
  '/api/v1': [
    'configmaps',
    'events',
    'namespaces',
    'namespaces/finalize',
    'namespaces/status',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumeclaims/status',
    'persistentvolumes',
    'pods',
    'pods/log',
    'pods/status',
    'secrets',
    'serviceaccounts',
    'serviceaccounts/token',
    'services',
  ],
  '/apis/apps/v1': ['deployments', 'deployments/scale', 'deployments/status'],
  '/apis/batch/v1': ['cronjobs', 'jobs', 'jobs/status'],
  '/apis/storage.k8s.io/v1': ['storageclasses'],
  '/apis/coordination.k8s.io/v1': ['leases'],
  '/apis/events.k8s.io/v1': ['events'],
  '/apis/rbac.authorization.k8s.io/v1': ['clusterrolebindings', 'clusterroles', 'rolebindings', 'roles'],
  '/apis/authentication.k8s.io/v1': ['selfsubjectreviews', 'tokenreviews'],
  '/apis/authorization.k8s.io/v1': [
    'localsubjectaccessreviews',
    'selfsubjectaccessreviews',
    'selfsubjectrulesreviews',
    'subjectaccessreviews',
  ],
  '/apis/admissionregistration.k8s.io/v1': ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
  '/apis/apiextensions.k8s.io/v1': ['customresourcedefinitions', 'customresourcedefinitions/status'],
};

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

const byName = (list: JsonValue, path: string, key: string, names: readonly string[]): JsonValue[] =>
  names.map((name) => itemsAt(list, path).find((item) => at(item, key) === name));

const groupNames = Object.keys(resources)
  .filter((path) => path !== '/api/v1')
  .map((path) => path.split('/')[2] ?? '');

const documentOf = async (t: CaseContext, groupVersion: string): Promise<JsonValue> => {
  const index = await get(t, '/openapi/v3');
  const url = textAt(at(index, ['paths', groupVersion]), 'serverRelativeURL');
  match(url, /^\/openapi\/v3\/.+\?hash=.+/);
  return get(t, url);
};

export const discovery: Topic = {
  topic: 'discovery',
  cases: {
    'the versions of the core group': async (t) => {
      t.same('api', without(await get(t, '/api'), 'serverAddressByClientCIDRs'));
    },
    'the list of groups has every group with its versions': async (t) => {
      const list = await get(t, '/apis');
      strictEqual(at(list, 'kind'), 'APIGroupList');
      t.same('groups', byName(list, 'groups', 'name', groupNames));
    },
    'a group and a path below /apis can be read separately': async (t) => {
      t.same('group', await get(t, '/apis/batch'));
    },
    'every resource has its verbs, kind and short names': async (t) => {
      for (const [path, names] of Object.entries(resources)) {
        const list = await get(t, path);
        strictEqual(at(list, 'kind'), 'APIResourceList');
        t.same(
          path,
          byName(list, 'resources', 'name', names).map((resource) => without(resource, 'storageVersionHash')),
        );
        t.same(`${path} itself`, { ...(list as JsonObject), resources: undefined });
      }
    },
    'aggregated discovery has the same in one response': async (t) => {
      const core = await t.call('GET', '/api', { accept: `${aggregated},application/json` });
      strictEqual(expectStatus(core, 200).headers['content-type'], aggregated);
      const groups = await t.call('GET', '/apis', { accept: `${aggregated},application/json` });
      strictEqual(at(expectStatus(groups, 200).body, 'kind'), 'APIGroupDiscoveryList');
      const batch =
        byName(groups.body, 'items', 'metadata.name', ['batch'])[0] ??
        itemsAt(groups.body).find((item) => at(item, 'metadata.name') === 'batch');
      t.same('jobs', byName(at(batch, 'versions.0'), 'resources', 'resource', ['jobs']));
      const v1 = at(itemsAt(core.body)[0], 'versions.0');
      t.same(
        'core',
        byName(v1, 'resources', 'resource', ['configmaps', 'namespaces', 'persistentvolumeclaims', 'serviceaccounts']),
      );
      strictEqual(at(v1, 'freshness'), 'Current');
    },
    'aggregated discovery returns 304 when nothing changed': async (t) => {
      const first = await t.call('GET', '/api', { accept: aggregated });
      const etag = expectStatus(first, 200).headers['etag'] ?? '';
      ok(etag !== '');
      expectStatus(await t.call('GET', '/api', { accept: aggregated, headers: { 'if-none-match': etag } }), 304);
    },
    'aggregated discovery includes custom resources': async (t) => {
      const names = {
        plural: 'widgets',
        singular: 'widget',
        kind: 'Widget',
        listKind: 'WidgetList',
        shortNames: ['wd'],
        categories: ['things'],
      };
      const widgets = await createWidgets(t, { spec: { names }, version: { subresources: { status: {} } } });
      const read = async () =>
        itemsAt((await t.call('GET', '/apis', { accept: aggregated })).body).find(
          (item) => at(item, 'metadata.name') === widgets.group,
        );
      t.same('group', await eventually('the group is listed', read, (group) => group !== undefined));
    },
    'the server returns its version': async (t) => {
      const version = await get(t, '/version');
      match(textAt(version, 'gitVersion'), /^v1\.\d+\.\d+/);
      strictEqual(at(version, 'major'), '1');
      match(textAt(version, 'minor'), /^\d+/);
      t.same(
        'fields',
        Object.keys(version as JsonObject)
          .filter((key) => !key.startsWith('emulation') && !key.startsWith('minCompat'))
          .toSorted(),
      );
    },
    'health is plain text': async (t) => {
      for (const path of ['/healthz', '/livez', '/readyz']) {
        const answer = expectStatus(await t.call('GET', path), 200);
        strictEqual(answer.body, 'ok', path);
        match(answer.headers['content-type'] ?? '', /^text\/plain/);
      }
    },
    'the document of openapi v3 for a version describes its kinds and paths': async (t) => {
      const core = await documentOf(t, 'api/v1');
      const schema = at(core, ['components', 'schemas', 'io.k8s.api.core.v1.ConfigMap']);
      t.same('kind', at(schema, 'x-kubernetes-group-version-kind'));
      strictEqual(at(schema, 'properties.data.type'), 'object');
      strictEqual(at(schema, 'properties.data.additionalProperties.type'), 'string');
      const path = at(core, ['paths', '/api/v1/namespaces/{namespace}/configmaps/{name}']);
      for (const method of ['get', 'put', 'patch', 'delete']) {
        t.same(method, {
          action: at(path, `${method}.x-kubernetes-action`),
          kind: at(path, `${method}.x-kubernetes-group-version-kind`),
        });
      }
      const batch = await documentOf(t, 'apis/batch/v1');
      ok(at(batch, ['components', 'schemas', 'io.k8s.api.batch.v1.Job']) !== undefined);
    },
    'the document of openapi v2 describes kinds for older clients': async (t) => {
      const document = expectStatus(await t.call('GET', '/openapi/v2'), 200).body;
      strictEqual(at(document, 'swagger'), '2.0');
      const definition = at(document, ['definitions', 'io.k8s.api.core.v1.ConfigMap']);
      t.same('kind', at(definition, 'x-kubernetes-group-version-kind'));
      ok(at(document, ['paths', '/api/v1/namespaces/{namespace}/configmaps']) !== undefined);
    },
  },
};
