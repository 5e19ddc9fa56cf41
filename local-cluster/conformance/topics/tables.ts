// Tables: the server computes the output of `kubectl get`.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, itemsAt, type JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  type Body,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  grouped,
  mergePatch,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1';

const tableOf = async (t: CaseContext, path: string): Promise<JsonValue> =>
  expectStatus(await t.call('GET', path, { accept }), 200).body;

/** Columns and cells; ages are omitted. */
const shown = (table: JsonValue): Body => {
  const columns = itemsAt(table, 'columnDefinitions');
  const isAge = columns.map((column) => at(column, 'name') === 'Age');
  return {
    columns: columns.map((column) => ({ ...(column as object), description: undefined })),
    rows: itemsAt(table, 'rows').map((row) =>
      itemsAt(row, 'cells').map((cell, i) => (isAge[i] === true ? '<age>' : cell)),
    ),
  };
};

const column = (name: string, jsonPath: string, more: Body = {}): Body => ({ name, jsonPath, type: 'string', ...more });

export const tables: Topic = {
  topic: 'tables',
  cases: {
    'a list as a table has columns, rows and metadata of each object': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v', l: 'w' }));
      const table = await tableOf(t, core(ns, 'configmaps'));
      t.same('shown', shown(table));
      t.same('object', at(table, 'rows.0.object'));
      strictEqual(at(table, 'kind'), 'Table');
      strictEqual(at(table, 'apiVersion'), 'meta.k8s.io/v1');
    },
    'rows contain as much of the object as requested': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
      const path = `${core(ns, 'configmaps')}?includeObject=`;
      strictEqual(at(await tableOf(t, `${path}Object`), 'rows.0.object.kind'), 'ConfigMap');
      strictEqual(at(await tableOf(t, `${path}Metadata`), 'rows.0.object.kind'), 'PartialObjectMetadata');
      strictEqual(at(await tableOf(t, `${path}None`), 'rows.0.object'), null);
      t.same('unknown', failureOf(await t.call('GET', `${path}All`, { accept })));
    },
    'one object is a table with one row': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'secrets'), {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'a' },
        data: { k: '' },
      });
      t.same('shown', shown(await tableOf(t, core(ns, 'secrets', 'a'))));
    },
    'an empty table has columns': async (t) => {
      const table = await tableOf(t, core(await t.namespace(), 'configmaps'));
      deepStrictEqual(itemsAt(table, 'rows'), []);
      t.same('columns', shown(table));
    },
    'a table has the continue token of its list': async (t) => {
      const ns = await t.namespace();
      for (const name of ['a', 'b', 'c']) await create(t, core(ns, 'configmaps'), configMap(name));
      const table = await tableOf(t, `${core(ns, 'configmaps')}?limit=2`);
      t.same('metadata', at(table, 'metadata'));
      strictEqual(itemsAt(table, 'rows').length, 2);
    },
    'a custom resource without columns shows name and age': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a'));
      t.same('shown', shown(await tableOf(t, widgets.path(ns))));
    },
    'columns of a custom resource are read from its paths': async (t) => {
      const additionalPrinterColumns = [
        column('Text', '.spec.text'),
        column('Number', '.spec.number', { type: 'integer' }),
        column('Fraction', '.spec.fraction', { type: 'number' }),
        column('Flag', '.spec.flag', { type: 'boolean' }),
        column('When', '.spec.when', { type: 'date' }),
        column('Wide', '.spec.text', { priority: 1, description: 'Only with -o wide.' }),
        column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
        column('First', '.spec.list[0]'),
        column('All', '.spec.list'),
        column('Map', '.spec.map'),
        column('Label', '.metadata.labels.x\\.y/z'),
        column('Missing', '.spec.nothing.here'),
        column('Wrong', '.spec.text', { type: 'integer' }),
        column('Age', '.metadata.creationTimestamp', { type: 'date' }),
      ];
      const widgets = await createWidgets(t, {
        root: { 'x-kubernetes-preserve-unknown-fields': true },
        version: { additionalPrinterColumns },
      });
      const ns = await t.namespace();
      const spec = {
        text: 'x',
        number: 5,
        fraction: 1.5,
        flag: false,
        when: 'never',
        list: ['p', 'q'],
        map: { k: 'v' },
      };
      const status = {
        conditions: [
          { type: 'Other', status: 'False' },
          { type: 'Ready', status: 'True' },
        ],
      };
      await create(t, widgets.path(ns), widgets.widget('a', { spec, status }, { labels: { 'x.y/z': 'label' } }));
      await create(t, widgets.path(ns), widgets.widget('b'));
      t.same('shown', shown(await tableOf(t, widgets.path(ns))));
    },
    'built-in kinds have their usual columns': async (t) => {
      const ns = await t.namespace();
      const claim = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'c' },
        spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'none', resources: { requests: { storage: '1Gi' } } },
      };
      await create(t, core(ns, 'persistentvolumeclaims'), claim);
      const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'example.com/x' }] } };
      await create(t, grouped('batch/v1', ns, 'jobs'), {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'j' },
        spec: { template },
      });
      await create(t, core(ns, 'pods'), pod('p'));
      await create(t, core(ns, 'serviceaccounts'), {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 's' },
      });
      await create(t, core(ns, 'services'), {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 's' },
        spec: { clusterIP: 'None', ports: [{ port: 80 }] },
      });
      await create(t, grouped('coordination.k8s.io/v1', ns, 'leases'), {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'l' },
        spec: { holderIdentity: 'me' },
      });
      // A namespace may have a default service account.
      t.same('serviceaccounts', shown(await tableOf(t, core(ns, 'serviceaccounts', 's'))));
      for (const plural of ['persistentvolumeclaims', 'pods', 'services'])
        t.same(plural, shown(await tableOf(t, core(ns, plural))));
      t.same('jobs', shown(await tableOf(t, grouped('batch/v1', ns, 'jobs'))));
      t.same('leases', shown(await tableOf(t, grouped('coordination.k8s.io/v1', ns, 'leases'))));
      t.same('namespace', shown(await tableOf(t, `/api/v1/namespaces/${ns}`)));
    },
    'jobs and claims show their state': async (t) => {
      const ns = await t.namespace();
      const claim = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'c' },
        spec: {
          accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
          storageClassName: 'none',
          volumeName: 'v',
          resources: { requests: { storage: '1Gi' } },
        },
      };
      await create(t, core(ns, 'persistentvolumeclaims'), claim);
      const bound = { status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] } };
      await mergePatch(t, `${core(ns, 'persistentvolumeclaims', 'c')}/status`, bound);
      t.same('claim', shown(await tableOf(t, core(ns, 'persistentvolumeclaims'))));
      await create(t, core(ns, 'pods'), pod('p', { nodeName: 'node-1' }));
      const running = {
        status: {
          phase: 'Running',
          podIP: '10.0.0.9',
          podIPs: [{ ip: '10.0.0.9' }],
          containerStatuses: [
            {
              name: 'main',
              ready: true,
              restartCount: 2,
              image: 'x',
              imageID: 'x',
              state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
            },
          ],
        },
      };
      await mergePatch(t, `${core(ns, 'pods', 'p')}/status`, running);
      t.same('pod', shown(await tableOf(t, core(ns, 'pods'))));
    },
    'storage classes and volumes show their provisioner and claim': async (t) => {
      const path = '/apis/storage.k8s.io/v1/storageclasses';
      const body = {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: `sc-${t.id}` },
        provisioner: 'example.com/p',
      };
      await create(t, path, body);
      t.cleanup(() => t.call('DELETE', `${path}/sc-${t.id}`));
      t.same('class', shown(await tableOf(t, `${path}/sc-${t.id}`)));
      const volume = {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `pv-${t.id}` },
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/tmp/x' } },
      };
      await create(t, '/api/v1/persistentvolumes', volume);
      t.cleanup(() => t.call('DELETE', `/api/v1/persistentvolumes/pv-${t.id}`));
      t.same('volume', shown(await tableOf(t, `/api/v1/persistentvolumes/pv-${t.id}`)));
    },
    'another version of tables is not supported': async (t) => {
      const answer = await t.call('GET', core(await t.namespace(), 'configmaps'), {
        accept: 'application/json;as=Table;g=meta.k8s.io;v=v9',
      });
      strictEqual(answer.status, 406);
      const fallback = await t.call('GET', core(await t.namespace(), 'configmaps'), {
        accept: `application/json;as=Table;g=meta.k8s.io;v=v9,application/json`,
      });
      strictEqual(at(expectStatus(fallback, 200).body, 'kind'), 'ConfigMapList');
    },
  },
};
