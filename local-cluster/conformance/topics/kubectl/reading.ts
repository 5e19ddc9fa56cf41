import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { match, strictEqual } from 'node:assert/strict';
import { normaliseColumns } from '#local-cluster/conformance/suite/normalise.ts';
import {
  configMap,
  core,
  create,
  eventually,
  grouped,
  mergePatch,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';
import { asShown, show, run, isOwn, kubectlWidgets } from '#local-cluster/conformance/topics/kubectl/support.ts';

/** No provisioner exists for it. */
const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c' },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'none', resources: { requests: { storage: '1Gi' } } },
};

export const reading: Topic['cases'] = {
  'get shows a table, wide and with labels': async (t) => {
    await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { k: 'v' }, { labels: { x: 'y' } }));
    await show(t, 'table', ['get', 'configmaps']);
    await show(t, 'one', ['get', 'cm/a']);
    await show(t, 'labels', ['get', 'cm', '--show-labels', '-L', 'x']);
    await show(t, 'name', ['get', 'cm', '-o', 'name']);
    await show(t, 'no headers', ['get', 'cm', '--no-headers']);
    await show(t, 'custom columns', ['get', 'cm', '-o', 'custom-columns=N:.metadata.name,K:.data.k']);
    await show(t, 'nothing', ['get', 'secrets']);
    await show(t, 'selected', ['get', 'cm', '-l', 'x=z']);
    await show(t, 'not there', ['get', 'cm', 'none']);
    await show(t, 'no such kind', ['get', 'gadgets']);
  },
  'get shows YAML and JSON': async (t) => {
    await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { k: 'v' }));
    await show(t, 'yaml', ['get', 'cm', 'a', '-o', 'yaml', '--show-managed-fields']);
    await show(t, 'list', ['get', 'cm', '-o', 'yaml']);
    await show(t, 'jsonpath', ['get', 'cm', 'a', '-o', 'jsonpath={.data.k}']);
  },
  'get of pods, claims and jobs with wide output': async (t) => {
    const ns = await t.namespace();
    await create(t, core(ns, 'pods'), pod('p', { nodeName: 'node-1' }));
    await create(t, core(ns, 'persistentvolumeclaims'), claim);
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'example.com/x' }] } };
    await create(t, grouped('batch/v1', ns, 'jobs'), {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'j' },
      spec: { template },
    });
    await show(t, 'pods', ['get', 'pods', '-o', 'wide']);
    await show(t, 'claims', ['get', 'pvc', '-o', 'wide']);
    await show(t, 'several', ['get', 'pods,pvc']);
    const jobs = asShown(await t.kubectl(['-n', ns, 'get', 'jobs', '-o', 'wide', '--no-headers']));
    match(jobs.stdout, /^j\s+Running\s+0\/1\s/);
  },
  'get of a custom resource by every name': async (t) => {
    const widgets = await kubectlWidgets(t);
    const ns = await t.namespace();
    await create(t, widgets.path(ns), widgets.widget('a', { spec: { size: 3, colour: 'red' } }));
    await show(t, 'plural', ['get', `widgets.${widgets.group}`]);
    await show(t, 'wide', ['get', `widget.${widgets.group}`, '-o', 'wide']);
    await show(t, 'one', ['get', `widgets.v1.${widgets.group}/a`]);
    await show(t, 'yaml', ['get', `widgets.${widgets.group}`, 'a', '-o', 'yaml']);
  },
  'get watches': async (t) => {
    const ns = await t.namespace();
    await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
    const begun = Promise.withResolvers<void>();
    const watching = t.kubectl(['-n', ns, 'get', 'cm', '-w', '--output-watch-events'], {
      onOutput: (stdout, stop) => {
        if (/ADDED .*\n/.test(stdout)) begun.resolve();
        if (/DELETED .*\n/.test(stdout)) stop();
      },
    });
    await Promise.race([begun.promise, watching]);
    await mergePatch(t, core(ns, 'configmaps', 'a'), { data: { l: 'w' } });
    await create(t, core(ns, 'configmaps'), configMap('b'));
    await t.call('DELETE', core(ns, 'configmaps', 'a'));
    t.same('watched', normaliseColumns((await watching).stdout));
  },
  'explain shows fields and descriptions of a custom resource': async (t) => {
    const widgets = await kubectlWidgets(t);
    const explain = (path: string) => ['explain', path, `--api-version=${widgets.apiVersion}`];
    // The OpenAPI documents include a new kind a moment later.
    const ready = async () => (await t.kubectl(explain('widgets'))).stdout.includes('spec\t<');
    await eventually('openapi knows the kind', ready, (known) => known);
    const shown: Readonly<Record<string, readonly string[]>> = {
      kind: explain('widgets'),
      spec: explain('widgets.spec'),
      field: explain('widgets.spec.size'),
      recursive: [...explain('widgets'), '--recursive'],
      'no such field': explain('widgets.spec.nothing'),
    };
    for (const [label, args] of Object.entries(shown)) {
      const { stdout, ...rest } = asShown(await t.kubectl(args));
      t.same(label, { ...rest, lines: stdout.split('\n').filter(isOwn) });
    }
  },
  'explain describes built-in kinds': async (t) => {
    const result = await t.kubectl(['explain', 'configmap.data']);
    strictEqual(result.code, 0, result.stderr);
    match(result.stdout, /KIND:\s+ConfigMap\nVERSION:\s+v1\n\nFIELD: data <map\[string\]string>/);
  },
  'describe shows an object and its events': async (t) => {
    const widgets = await kubectlWidgets(t);
    const ns = await t.namespace();
    const created = await create(
      t,
      widgets.path(ns),
      widgets.widget(
        'a',
        { spec: { size: 3, parts: [{ name: 'p' }] } },
        { labels: { x: 'y' }, annotations: { n: 'm' } },
      ),
    );
    const involvedObject = {
      apiVersion: widgets.apiVersion,
      kind: 'Widget',
      namespace: ns,
      name: 'a',
      uid: (created as { metadata: { uid: string } }).metadata.uid,
    };
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    await create(t, core(ns, 'events'), {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e' },
      involvedObject,
      reason: 'Grown',
      message: 'It grew.',
      type: 'Normal',
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      source: { component: 'tester' },
    });
    await show(t, 'widget', ['describe', `widgets.${widgets.group}`, 'a']);
    await create(t, core(ns, 'configmaps'), configMap('m', { k: 'v' }));
    await show(t, 'configmap', ['describe', 'cm', 'm']);
    await show(t, 'namespace', ['describe', 'ns', ns]);
  },
  'describe shows claims and pods': async (t) => {
    const ns = await t.namespace();
    await create(t, core(ns, 'persistentvolumeclaims'), claim);
    await show(t, 'claim', ['describe', 'pvc', 'c']);
    await create(t, core(ns, 'pods'), pod('p'));
    const result = await run(t, ['describe', 'pod', 'p']);
    match(result.stdout, /^Name:\s+p\nNamespace:/);
  },
};
