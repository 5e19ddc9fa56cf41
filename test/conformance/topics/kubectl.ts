// kubectl as people use it: the same output from either server.
import { match, ok, strictEqual } from 'node:assert/strict';
import type { CaseContext, KubectlResult, Topic } from '#test/conformance/suite/case.ts';
import { normaliseColumns } from '#test/conformance/suite/normalise.ts';
import { createWidgets } from '#test/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  eventually,
  expectStatus,
  grouped,
  mergePatch,
  pod,
} from '#test/conformance/topics/objects.ts';

const asShown = ({ code, stdout, stderr }: KubectlResult): KubectlResult => ({
  code,
  stdout: normaliseColumns(stdout),
  // The skew of versions is between kubectl and the server of the day.
  stderr: normaliseColumns(stderr.replace(/^WARNING: version difference.*\n/m, '')),
});

/** Runs kubectl in the case's namespace and compares what it shows. */
const show = async (t: CaseContext, label: string, args: readonly string[], stdin?: string): Promise<KubectlResult> => {
  const ns = await t.namespace();
  const result = asShown(await t.kubectl(['-n', ns, ...args], stdin === undefined ? {} : { stdin }));
  t.same(label, result);
  return result;
};

const run = async (t: CaseContext, args: readonly string[], stdin?: string): Promise<KubectlResult> => {
  const result = await t.kubectl(['-n', await t.namespace(), ...args], stdin === undefined ? {} : { stdin });
  strictEqual(result.code, 0, `kubectl ${args.join(' ')}: ${result.stderr}`);
  return result;
};

const yamlMap = (data: Readonly<Record<string, string>>, extra = ''): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n${extra}data:\n${Object.entries(data)
    .map(([key, value]) => `  ${key}: ${JSON.stringify(value)}\n`)
    .join('')}`;

const schema = {
  spec: {
    type: 'object',
    description: 'What is wanted.',
    required: ['size'],
    properties: {
      size: { type: 'integer', description: 'How big it is.' },
      colour: { type: 'string', enum: ['red', 'blue'] },
      parts: {
        type: 'array',
        items: { type: 'object', properties: { name: { type: 'string', description: 'Of a part.' } } },
      },
    },
  },
  status: {
    type: 'object',
    properties: {
      conditions: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    },
  },
};

const names = {
  plural: 'widgets',
  singular: 'widget',
  kind: 'Widget',
  listKind: 'WidgetList',
  shortNames: ['wdg'],
  categories: ['gear'],
};
const columns = [
  { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
  { name: 'Colour', type: 'string', jsonPath: '.spec.colour', priority: 1 },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

/** Fields and what this schema says of them; what Kubernetes says of metadata is its own prose. */
const isOwn = (line: string): boolean =>
  !/^ {4,}\S/.test(line) || line.includes('\t<') || /What is wanted|How big it is|Of a part/.test(line);

const kubectlWidgets = (t: CaseContext) =>
  createWidgets(t, {
    properties: schema,
    spec: { names },
    version: { subresources: { status: {} }, additionalPrinterColumns: columns },
  });

export const kubectl: Topic = {
  topic: 'kubectl',
  cases: {
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
    'get of pods, claims and jobs is wide when asked': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'pods'), pod('p', { nodeName: 'node-1' }));
      const claim = {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'none',
        resources: { requests: { storage: '1Gi' } },
      };
      await create(t, core(ns, 'persistentvolumeclaims'), {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'c' },
        spec: claim,
      });
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
      const watching = t.kubectl(['-n', ns, 'get', 'cm', '-w', '--output-watch-events'], { timeoutMs: 4000 });
      await new Promise((resolve) => setTimeout(resolve, 2000));
      await mergePatch(t, core(ns, 'configmaps', 'a'), { data: { l: 'w' } });
      await create(t, core(ns, 'configmaps'), configMap('b'));
      await t.call('DELETE', core(ns, 'configmaps', 'a'));
      t.same('watched', normaliseColumns((await watching).stdout));
    },
    'apply creates, leaves alone, changes and merges': async (t) => {
      await show(t, 'created', ['apply', '-f', '-'], yamlMap({ k: 'v', l: 'w' }));
      await show(t, 'unchanged', ['apply', '-f', '-'], yamlMap({ k: 'v', l: 'w' }));
      await mergePatch(t, core(await t.namespace(), 'configmaps', 'a'), { data: { other: 'o' } });
      await show(t, 'configured', ['apply', '-f', '-'], yamlMap({ k: 'changed' }));
      await show(t, 'object', ['get', 'cm', 'a', '-o', 'yaml']);
    },
    'apply merges containers of a pod and says what may not change': async (t) => {
      const manifest = (image: string, more = ''): string =>
        `apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: main\n    image: ${image}\n${more}`;
      await run(t, ['apply', '-f', '-'], manifest('example.com/a'));
      await show(t, 'image', ['apply', '-f', '-'], manifest('example.com/b'));
      const refused = await t.kubectl(['-n', await t.namespace(), 'apply', '-f', '-'], {
        stdin: manifest('example.com/b', '  hostname: other\n'),
      });
      strictEqual(refused.code, 1);
      match(refused.stderr, /^The Pod "p" is invalid: /);
    },
    'apply of a custom resource, and a fault in it': async (t) => {
      const widgets = await kubectlWidgets(t);
      const manifest = (spec: string): string =>
        `apiVersion: ${widgets.apiVersion}\nkind: Widget\nmetadata:\n  name: a\nspec:\n${spec}`;
      await show(t, 'created', ['apply', '-f', '-'], manifest('  size: 1\n'));
      await show(t, 'configured', ['apply', '-f', '-'], manifest('  size: 2\n  colour: red\n'));
      await show(t, 'unknown field', ['apply', '-f', '-'], manifest('  size: 2\n  sise: 3\n'));
      await show(t, 'not validated', ['apply', '--validate=false', '-f', '-'], manifest('  size: 2\n  sise: 3\n'));
      await show(t, 'invalid', ['apply', '-f', '-'], manifest('  size: big\n  colour: green\n'));
      await show(
        t,
        'no such kind',
        ['apply', '-f', '-'],
        manifest('  size: 1\n').replace('kind: Widget', 'kind: Gadget'),
      );
    },
    'apply by the server, with conflicts': async (t) => {
      await show(t, 'created', ['apply', '--server-side', '-f', '-'], yamlMap({ k: 'v' }));
      await show(t, 'again', ['apply', '--server-side', '-f', '-'], yamlMap({ k: 'v' }));
      await show(t, 'conflict', ['apply', '--server-side', '--field-manager=other', '-f', '-'], yamlMap({ k: 'w' }));
      await show(
        t,
        'forced',
        ['apply', '--server-side', '--field-manager=other', '--force-conflicts', '-f', '-'],
        yamlMap({ k: 'w' }),
      );
      await show(t, 'object', ['get', 'cm', 'a', '-o', 'yaml', '--show-managed-fields']);
    },
    'apply by the server takes over from apply by the client': async (t) => {
      await run(t, ['apply', '-f', '-'], yamlMap({ k: 'v', l: 'w' }));
      await show(t, 'taken over', ['apply', '--server-side', '-f', '-'], yamlMap({ k: 'v' }));
      await show(t, 'object', ['get', 'cm', 'a', '-o', 'yaml', '--show-managed-fields']);
    },
    'apply dry': async (t) => {
      await show(t, 'client', ['apply', '--dry-run=client', '-f', '-'], yamlMap({ k: 'v' }));
      await show(t, 'server', ['apply', '--dry-run=server', '-f', '-'], yamlMap({ k: 'v' }));
      await show(t, 'server side', ['apply', '--server-side', '--dry-run=server', '-f', '-'], yamlMap({ k: 'v' }));
      await show(t, 'nothing is there', ['get', 'cm', 'a']);
    },
    'apply prunes nothing it does not own, and reads several documents': async (t) => {
      const two = `${yamlMap({ k: 'v' })}---\n${yamlMap({ k: 'v' }).replace('name: a', 'name: b')}`;
      await show(t, 'created', ['apply', '-f', '-'], two);
      await show(t, 'deleted', ['delete', '-f', '-'], two);
    },
    'diff shows what apply would change': async (t) => {
      await run(t, ['apply', '-f', '-'], yamlMap({ k: 'v' }));
      const same = await t.kubectl(['-n', await t.namespace(), 'diff', '-f', '-'], { stdin: yamlMap({ k: 'v' }) });
      strictEqual(same.code, 0, same.stderr);
      strictEqual(same.stdout, '');
      const changed = await t.kubectl(['-n', await t.namespace(), 'diff', '-f', '-'], { stdin: yamlMap({ k: 'w' }) });
      strictEqual(changed.code, 1, changed.stderr);
      const lines = changed.stdout.split('\n').filter((line) => /^[-+] /.test(line));
      t.same(
        'lines',
        lines.filter((line) => !line.includes('last-applied') && !line.includes('{"apiVersion"')),
      );
    },
    'explain shows fields and descriptions of a custom resource': async (t) => {
      const widgets = await kubectlWidgets(t);
      const explain = (path: string) => ['explain', path, `--api-version=${widgets.apiVersion}`];
      // The documents of openapi follow a new kind a moment later.
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
    'explain knows built-in kinds': async (t) => {
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
      const claim = {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'none',
        resources: { requests: { storage: '1Gi' } },
      };
      await create(t, core(ns, 'persistentvolumeclaims'), {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'c' },
        spec: claim,
      });
      await show(t, 'claim', ['describe', 'pvc', 'c']);
      await create(t, core(ns, 'pods'), pod('p'));
      const result = await run(t, ['describe', 'pod', 'p']);
      match(result.stdout, /^Name:\s+p\nNamespace:/);
    },
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
      await show(t, 'json', [
        'patch',
        'cm',
        'a',
        '--type=json',
        '-p',
        '[{"op":"replace","path":"/data/l","value":"y"}]',
      ]);
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
    'edit as a script': async (t) => {
      await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { k: 'before' }));
      const fetched = await run(t, ['get', 'cm', 'a', '-o', 'yaml']);
      await show(t, 'replaced', ['replace', '-f', '-'], fetched.stdout.replace('before', 'after'));
      const stale = fetched.stdout.replace('before', 'late');
      await show(t, 'stale', ['replace', '-f', '-'], stale);
    },
    'delete waits, or not': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      await show(t, 'gone', ['delete', 'cm', 'a']);
      await show(t, 'not there', ['delete', 'cm', 'a']);
      await show(t, 'not there is fine', ['delete', 'cm', 'a', '--ignore-not-found']);
      await create(t, core(ns, 'configmaps'), configMap('held', undefined, { finalizers: ['example.com/hold'] }));
      await show(t, 'marked', ['delete', 'cm', 'held', '--wait=false']);
      const waiting = t.kubectl(['-n', ns, 'delete', 'cm', 'held']);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      await mergePatch(t, core(ns, 'configmaps', 'held'), { metadata: { finalizers: null } });
      t.same('waited', asShown(await waiting));
    },
    'delete by selector and of everything': async (t) => {
      const ns = await t.namespace();
      for (const name of ['a', 'b', 'c'])
        await create(
          t,
          core(ns, 'configmaps'),
          configMap(name, undefined, { labels: { of: name === 'c' ? 'x' : 'y' } }),
        );
      await show(t, 'selected', ['delete', 'cm', '-l', 'of=y']);
      await show(t, 'dry', ['delete', 'cm', '--all', '--dry-run=server']);
      await show(t, 'all', ['delete', 'cm', '--all']);
    },
    'delete cascades as told': async (t) => {
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
    'create of every kind it knows': async (t) => {
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
    'wait for a condition, a value, creation and deletion': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a', { k: 'v' }));
      await show(t, 'value there', ['wait', '--for=jsonpath={.data.k}=v', 'cm/a', '--timeout=10s']);
      const coming = t.kubectl(['-n', ns, 'wait', '--for=jsonpath={.data.k}=w', 'cm/a', '--timeout=20s']);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      await mergePatch(t, core(ns, 'configmaps', 'a'), { data: { k: 'w' } });
      t.same('value comes', asShown(await coming));
      await show(t, 'too late', ['wait', '--for=condition=Ready', 'cm/a', '--timeout=1s']);
      const going = t.kubectl(['-n', ns, 'wait', '--for=delete', 'cm/a', '--timeout=20s']);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      await t.call('DELETE', core(ns, 'configmaps', 'a'));
      t.same('goes', asShown(await going));
    },
    'auth can-i, for oneself and others': async (t) => {
      const ns = await t.namespace();
      await show(t, 'everything', ['auth', 'can-i', '*', '*']);
      await show(t, 'other', ['auth', 'can-i', 'get', 'pods', '--as=jane']);
      await run(t, ['create', 'role', 'r', '--verb=get,list', '--resource=pods']);
      await run(t, ['create', 'rolebinding', 'b', '--role=r', '--user=jane']);
      await show(t, 'granted', ['auth', 'can-i', 'list', 'pods', '--as=jane']);
      await show(t, 'whoami', ['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']);
      const refused = await t.kubectl(['-n', ns, 'get', 'secrets', '--as=jane']);
      t.same('refused', asShown(refused));
    },
    'api-resources and api-versions list what is served': async (t) => {
      const widgets = await kubectlWidgets(t);
      const own = await t.kubectl(['api-resources', `--api-group=${widgets.group}`, '-o', 'wide']);
      t.same('own', asShown(own));
      const storage = await t.kubectl([
        'api-resources',
        '--api-group=coordination.k8s.io',
        '--no-headers',
        '-o',
        'name',
      ]);
      ok(storage.stdout.split('\n').includes('leases.coordination.k8s.io'));
      const everything = await t.kubectl(['api-resources', '-o', 'wide', '--no-headers']);
      const wanted =
        /^(configmaps|secrets|pods|persistentvolumeclaims|persistentvolumes|jobs|storageclasses|leases|roles|customresourcedefinitions|namespaces|serviceaccounts)\s/;
      t.same(
        'rows',
        normaliseColumns(everything.stdout)
          .split('\n')
          .filter((line) => wanted.test(line))
          .toSorted(),
      );
      const versions = await t.kubectl(['api-versions']);
      for (const version of ['v1', 'batch/v1', 'apiextensions.k8s.io/v1', `${widgets.group}/v1`])
        ok(versions.stdout.split('\n').includes(version), version);
    },
    'get of a category': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'pods'), pod('p'));
      await show(t, 'all', ['get', 'all']);
    },
    'version, cluster-info and raw paths': async (t) => {
      const version = await t.kubectl(['version', '-o', 'json']);
      strictEqual(version.code, 0, version.stderr);
      match(
        (JSON.parse(version.stdout) as { serverVersion: { gitVersion: string } }).serverVersion.gitVersion,
        /^v1\./,
      );
      const raw = await t.kubectl(['get', '--raw', '/readyz']);
      strictEqual(raw.stdout, 'ok');
    },
    'scale of a custom resource and a deployment': async (t) => {
      const ns = await t.namespace();
      const spec = {
        replicas: 1,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'example.com/x:1' }] } },
      };
      await create(t, grouped('apps/v1', ns, 'deployments'), {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'd' },
        spec,
      });
      await show(t, 'deployment', ['scale', 'deployment', 'd', '--replicas=3']);
      await show(t, 'replicas', ['get', 'deployment', 'd', '-o', 'jsonpath={.spec.replicas}']);
    },
  },
};
