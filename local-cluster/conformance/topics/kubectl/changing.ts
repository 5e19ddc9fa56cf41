import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { strictEqual } from 'node:assert/strict';
import { at } from '#local-cluster/conformance/suite/json.ts';
import {
  configMap,
  core,
  create,
  eventually,
  expectStatus,
  get,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { asShown, show, run, kubectlWidgets } from '#local-cluster/conformance/topics/kubectl/support.ts';

export const changing: Topic['cases'] = {
  'patch of every type': async (t) => {
    await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { k: 'v' }));
    await show(t, 'strategic', ['patch', 'cm', 'a', '-p', '{"data":{"k":"w"}}']);
    await show(t, 'same again', ['patch', 'cm', 'a', '-p', '{"data":{"k":"w"}}']);
    await show(t, 'merge', [
      'patch',
      'cm',
      'a',
      '--type=merge',
      '-p',
      '{"data":{"k":null,"l":"x"}}',
      '-o',
      'jsonpath={.data}',
    ]);
    await show(t, 'json', ['patch', 'cm', 'a', '--type=json', '-p', '[{"op":"replace","path":"/data/l","value":"y"}]']);
    await show(t, 'json that fails', [
      'patch',
      'cm',
      'a',
      '--type=json',
      '-p',
      '[{"op":"remove","path":"/data/none"}]',
    ]);
  },
  'patch of status through its subresource': async (t) => {
    const widgets = await kubectlWidgets(t);
    const ns = await t.namespace();
    await create(t, widgets.path(ns), widgets.widget('a', { spec: { size: 1 } }));
    const patch = JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'True' }] } });
    await show(t, 'patched', [
      'patch',
      `widgets.${widgets.group}`,
      'a',
      '--subresource=status',
      '--type=merge',
      '-p',
      patch,
    ]);
    await show(t, 'waited', ['wait', '--for=condition=Ready', `widgets.${widgets.group}/a`, '--timeout=10s']);
  },
  'edit with a script': async (t) => {
    await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { k: 'before' }));
    const fetched = await run(t, ['get', 'cm', 'a', '-o', 'yaml']);
    await show(t, 'replaced', ['replace', '-f', '-'], fetched.stdout.replace('before', 'after'));
    const stale = fetched.stdout.replace('before', 'late');
    await show(t, 'stale', ['replace', '-f', '-'], stale);
  },
  'delete with and without waiting': async (t) => {
    const ns = await t.namespace();
    await create(t, core(ns, 'configmaps'), configMap('a'));
    await show(t, 'gone', ['delete', 'cm', 'a']);
    await show(t, 'not there', ['delete', 'cm', 'a']);
    await show(t, 'not there is fine', ['delete', 'cm', 'a', '--ignore-not-found']);
    const makeHeld = () =>
      create(t, core(ns, 'configmaps'), configMap('held', undefined, { finalizers: ['example.com/hold'] }));
    const release = () => mergePatch(t, core(ns, 'configmaps', 'held'), { metadata: { finalizers: null } });
    await makeHeld();
    await show(t, 'marked', ['delete', 'cm', 'held', '--wait=false']);
    await release();
    await makeHeld();
    const waiting = t.kubectl(['-n', ns, 'delete', 'cm', 'held']);
    const markedAt = async () => at(await get(t, core(ns, 'configmaps', 'held')), 'metadata.deletionTimestamp');
    await eventually('held is marked', markedAt, (time) => time !== undefined);
    await release();
    t.same('waited', asShown(await waiting));
  },
  'delete by selector and of everything': async (t) => {
    const ns = await t.namespace();
    for (const name of ['a', 'b', 'c'])
      await create(t, core(ns, 'configmaps'), configMap(name, undefined, { labels: { of: name === 'c' ? 'x' : 'y' } }));
    await show(t, 'selected', ['delete', 'cm', '-l', 'of=y']);
    await show(t, 'dry', ['delete', 'cm', '--all', '--dry-run=server']);
    await show(t, 'all', ['delete', 'cm', '--all']);
  },
  'delete with every cascade option': async (t) => {
    const ns = await t.namespace();
    for (const policy of ['background', 'foreground', 'orphan']) {
      const parent = await create(t, core(ns, 'configmaps'), configMap(`p-${policy}`));
      const { uid } = (parent as { metadata: { uid: string } }).metadata;
      const ownerReferences = [
        { apiVersion: 'v1', kind: 'ConfigMap', name: `p-${policy}`, uid, blockOwnerDeletion: true },
      ];
      await create(t, core(ns, 'secrets'), {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `c-${policy}`, ownerReferences },
      });
      await show(t, policy, ['delete', 'cm', `p-${policy}`, `--cascade=${policy}`]);
    }
    expectStatus(await t.call('GET', core(ns, 'secrets', 'c-orphan')), 200);
    await show(t, 'the child is gone', ['wait', '--for=delete', 'secret/c-background', '--timeout=30s']);
  },
  'create of every supported kind': async (t) => {
    await show(t, 'configmap', ['create', 'configmap', 'a', '--from-literal=k=v']);
    await show(t, 'again', ['create', 'configmap', 'a']);
    await show(t, 'secret', [
      'create',
      'secret',
      'generic',
      's',
      '--from-literal=k=v',
      '-o',
      'yaml',
      '--dry-run=server',
    ]);
    await show(t, 'job', ['create', 'job', 'j', '--image=example.com/x']);
    await show(t, 'account', ['create', 'serviceaccount', 'robot']);
    await show(t, 'role', ['create', 'role', 'r', '--verb=get', '--resource=pods']);
    await show(t, 'binding', ['create', 'rolebinding', 'b', '--role=r', '--serviceaccount=default:robot']);
    await show(t, 'namespace', ['create', 'namespace', `more-${t.id}`]);
    t.cleanup(() => t.call('DELETE', `/api/v1/namespaces/more-${t.id}`));
    const token = await run(t, ['create', 'token', 'robot']);
    strictEqual(token.stdout.trim().split('.').length, 3);
  },
  'label and annotate': async (t) => {
    await create(t, core(await t.namespace(), 'configmaps'), configMap('a'));
    await show(t, 'label', ['label', 'cm', 'a', 'x=y']);
    await show(t, 'label again', ['label', 'cm', 'a', 'x=z']);
    await show(t, 'overwrite', ['label', 'cm', 'a', 'x=z', '--overwrite']);
    await show(t, 'remove', ['label', 'cm', 'a', 'x-']);
    await show(t, 'bad value', ['label', 'cm', 'a', 'x=a b']);
    await show(t, 'annotate', ['annotate', 'cm', 'a', 'bullion.dev/retry=1']);
    await show(t, 'annotate all', ['annotate', 'cm', '--all', 'bullion.dev/retry=2', '--overwrite']);
    await show(t, 'object', ['get', 'cm', 'a', '-o', 'jsonpath={.metadata.annotations}{.metadata.labels}']);
  },
};
