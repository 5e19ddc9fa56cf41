// Create, read, replace, delete.
import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, changed, itemsAt, textAt } from '#local-cluster/conformance/suite/json.ts';
import {
  configMap,
  core,
  create,
  eventuallyGone,
  expectStatus,
  failureOf,
  get,
  grouped,
  namesOf,
} from '#local-cluster/conformance/topics/objects.ts';

const version = ['metadata', 'resourceVersion'] as const;

export const crud: Topic = {
  topic: 'crud',
  cases: {
    'a created object has uid, version, time and its field manager': async (t) => {
      const created = await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { k: 'v' }));
      match(textAt(created, 'metadata.uid'), /^[0-9a-f-]{36}$/);
      match(textAt(created, version), /^\d+$/);
      t.same('object', created);
    },
    'fields that only the server sets are ignored in requests': async (t) => {
      const ns = await t.namespace();
      const meta = {
        uid: '11111111-1111-4111-8111-111111111111',
        creationTimestamp: '2001-01-01T00:00:00Z',
        generation: 7,
      };
      const created = await create(t, core(ns, 'configmaps'), configMap('a', undefined, { ...meta, selfLink: '/x' }));
      notStrictEqual(at(created, 'metadata.uid'), meta.uid);
      notStrictEqual(at(created, 'metadata.creationTimestamp'), meta.creationTimestamp);
      t.same('object', created);
    },
    'an object to create must not have a version': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('POST', path, { body: configMap('a', undefined, { resourceVersion: '5' }) });
      t.same('answer', failureOf(answer));
    },
    'a deletion timestamp cannot be set at creation': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const created = await create(t, path, configMap('a', undefined, { deletionTimestamp: '2001-01-01T00:00:00Z' }));
      strictEqual(at(created, 'metadata.deletionTimestamp'), undefined);
    },
    'a replace with the current version results in a new version': async (t) => {
      const ns = await t.namespace();
      const created = await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
      const body = changed(created, (copy) => (copy['data'] = { k: 'w' }));
      const replaced = expectStatus(await t.call('PUT', core(ns, 'configmaps', 'a'), { body }), 200).body;
      strictEqual(at(replaced, 'data.k'), 'w');
      ok(BigInt(textAt(replaced, version)) > BigInt(textAt(created, version)));
      strictEqual(at(replaced, 'metadata.uid'), at(created, 'metadata.uid'));
    },
    'a replace without a version always succeeds': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
      const answer = await t.call('PUT', core(ns, 'configmaps', 'a'), { body: configMap('a', { k: 'x' }) });
      strictEqual(at(expectStatus(answer, 200).body, 'data.k'), 'x');
    },
    'a replace that changes nothing keeps the version': async (t) => {
      const ns = await t.namespace();
      const created = await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
      const answer = await t.call('PUT', core(ns, 'configmaps', 'a'), { body: created });
      strictEqual(at(answer.body, version), at(created, version));
    },
    'a replace of a missing object is not found': async (t) => {
      const ns = await t.namespace();
      const answer = await t.call('PUT', core(ns, 'configmaps', 'a'), { body: configMap('a') });
      t.same('answer', failureOf(expectStatus(answer, 404)));
    },
    'a replace of a missing Lease creates it': async (t) => {
      const ns = await t.namespace();
      const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'a' }, spec: {} };
      expectStatus(await t.call('PUT', grouped('coordination.k8s.io/v1', ns, 'leases', 'a'), { body }), 201);
    },
    'a replace with the uid of another object is a conflict': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      const body = configMap('a', undefined, { uid: '11111111-1111-4111-8111-111111111111' });
      const answer = await t.call('PUT', core(ns, 'configmaps', 'a'), { body });
      strictEqual(at(expectStatus(answer, 409).body, 'reason'), 'Conflict');
    },
    'name and namespace in the body must be those of the path': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      const renamed = await t.call('PUT', core(ns, 'configmaps', 'a'), { body: configMap('b') });
      t.same('other name', failureOf(expectStatus(renamed, 400)));
      const moved = await t.call('POST', core(ns, 'configmaps'), {
        body: configMap('b', undefined, { namespace: 'default' }),
      });
      t.same('other namespace', failureOf(expectStatus(moved, 400)));
    },
    'delete returns a Status that names the object': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      const answer = await t.call('DELETE', core(ns, 'configmaps', 'a'));
      t.same('answer', failureOf(expectStatus(answer, 200)));
      expectStatus(await t.call('GET', core(ns, 'configmaps', 'a')), 404);
    },
    'delete with the uid or version of another object is a conflict': async (t) => {
      const ns = await t.namespace();
      const created = await create(t, core(ns, 'configmaps'), configMap('a'));
      const remove = (preconditions: object) =>
        t.call('DELETE', core(ns, 'configmaps', 'a'), {
          body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions },
        });
      const uid = await remove({ uid: '11111111-1111-4111-8111-111111111111' });
      strictEqual(at(expectStatus(uid, 409).body, 'reason'), 'Conflict');
      strictEqual(at(expectStatus(await remove({ resourceVersion: '1' }), 409).body, 'reason'), 'Conflict');
      expectStatus(await remove({ uid: at(created, 'metadata.uid') }), 200);
    },
    'delete of a collection deletes what the selector matches': async (t) => {
      const ns = await t.namespace();
      for (const name of ['a', 'b', 'c']) {
        const labels = { tier: name === 'c' ? 'keep' : 'drop' };
        await create(t, core(ns, 'configmaps'), configMap(name, undefined, { labels }));
      }
      const answer = expectStatus(await t.call('DELETE', `${core(ns, 'configmaps')}?labelSelector=tier%3Ddrop`), 200);
      strictEqual(at(answer.body, 'kind'), 'ConfigMapList');
      deepStrictEqual(namesOf(answer.body), ['a', 'b']);
      deepStrictEqual(namesOf(await get(t, core(ns, 'configmaps'))), ['c']);
    },
    'a name can be used again after a delete': async (t) => {
      const ns = await t.namespace();
      const first = await create(t, core(ns, 'configmaps'), configMap('a'));
      expectStatus(await t.call('DELETE', core(ns, 'configmaps', 'a')), 200);
      await eventuallyGone(t, core(ns, 'configmaps', 'a'));
      const second = await create(t, core(ns, 'configmaps'), configMap('a'));
      notStrictEqual(at(second, 'metadata.uid'), at(first, 'metadata.uid'));
    },
    'an immutable ConfigMap and Secret reject changes': async (t) => {
      const ns = await t.namespace();
      for (const [kind, plural] of [
        ['ConfigMap', 'configmaps'],
        ['Secret', 'secrets'],
      ] as const) {
        const body = { apiVersion: 'v1', kind, metadata: { name: 'a' }, data: { k: 'dg==' }, immutable: true };
        await create(t, core(ns, plural), body);
        const answer = await t.call('PUT', core(ns, plural, 'a'), { body: { ...body, data: { k: 'dw==' } } });
        t.same(kind, failureOf(expectStatus(answer, 422)));
      }
    },
    'stringData of a Secret becomes data': async (t) => {
      const ns = await t.namespace();
      const body = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'a' },
        stringData: { k: 'text' },
        data: { k: 'dg==', l: 'dg==' },
      };
      const created = await create(t, core(ns, 'secrets'), body);
      t.same('secret', created);
      strictEqual(at(created, 'data.k'), Buffer.from('text').toString('base64'));
    },
    'data of a Secret must be base64': async (t) => {
      const ns = await t.namespace();
      const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, data: { k: '*' } };
      const answer = await t.call('POST', core(ns, 'secrets'), { body });
      strictEqual(at(expectStatus(answer, 400).body, 'reason'), 'BadRequest');
    },
    'the type of a Secret is immutable': async (t) => {
      const ns = await t.namespace();
      const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, type: 'example.com/a' };
      await create(t, core(ns, 'secrets'), body);
      const answer = await t.call('PUT', core(ns, 'secrets', 'a'), { body: { ...body, type: 'example.com/b' } });
      t.same('answer', failureOf(expectStatus(answer, 422)));
    },
    'a body can be YAML': async (t) => {
      const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: "1"\n';
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), {
        text,
        contentType: 'application/yaml',
      });
      strictEqual(at(expectStatus(answer, 201).body, 'data.k'), '1');
    },
    'a response can be YAML': async (t) => {
      const answer = await t.call('GET', '/api/v1/namespaces/default', { accept: 'application/yaml' });
      strictEqual(answer.headers['content-type'], 'application/yaml');
      ok(typeof answer.body === 'string');
      match(answer.body, /^apiVersion: v1\nkind: Namespace\n/m);
    },
    'one of two writers with the same version wins': async (t) => {
      const ns = await t.namespace();
      const created = await create(t, core(ns, 'configmaps'), configMap('a'));
      const write = (value: string) =>
        t.call('PUT', core(ns, 'configmaps', 'a'), { body: changed(created, (copy) => (copy['data'] = { value })) });
      const answers = await Promise.all(['1', '2', '3', '4'].map(write));
      deepStrictEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 409, 409, 409],
      );
    },
    'only metadata can be requested': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
      const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
      t.same('object', (await t.call('GET', core(ns, 'configmaps', 'a'), { accept })).body);
      const listAccept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
      const list = (await t.call('GET', core(ns, 'configmaps'), { accept: listAccept })).body;
      t.same('list', list);
      strictEqual(itemsAt(list).length, 1);
    },
  },
};
