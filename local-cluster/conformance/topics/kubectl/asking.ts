import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { match, ok, strictEqual } from 'node:assert/strict';
import { normaliseColumns } from '#local-cluster/conformance/suite/normalise.ts';
import { configMap, core, create, grouped, mergePatch, pod } from '#local-cluster/conformance/topics/objects.ts';
import { asShown, show, run, kubectlWidgets } from '#local-cluster/conformance/topics/kubectl/support.ts';

export const asking: Topic['cases'] = {
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
  'auth can-i, for the user and others': async (t) => {
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
  'api-resources and api-versions list the served resources': async (t) => {
    const widgets = await kubectlWidgets(t);
    const own = await t.kubectl(['api-resources', `--api-group=${widgets.group}`, '-o', 'wide']);
    t.same('own', asShown(own));
    const storage = await t.kubectl(['api-resources', '--api-group=coordination.k8s.io', '--no-headers', '-o', 'name']);
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
    match((JSON.parse(version.stdout) as { serverVersion: { gitVersion: string } }).serverVersion.gitVersion, /^v1\./);
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
};
