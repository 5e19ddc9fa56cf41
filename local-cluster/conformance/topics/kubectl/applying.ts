import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { match, strictEqual } from 'node:assert/strict';
import { core, mergePatch } from '#local-cluster/conformance/topics/objects.ts';
import { show, run, yamlMap, kubectlWidgets } from '#local-cluster/conformance/topics/kubectl/support.ts';

export const applying: Topic['cases'] = {
  'apply creates, keeps, changes and merges': async (t) => {
    await show(t, 'created', ['apply', '-f', '-'], yamlMap({ k: 'v', l: 'w' }));
    await show(t, 'unchanged', ['apply', '-f', '-'], yamlMap({ k: 'v', l: 'w' }));
    await mergePatch(t, core(await t.namespace(), 'configmaps', 'a'), { data: { other: 'o' } });
    await show(t, 'configured', ['apply', '-f', '-'], yamlMap({ k: 'changed' }));
    await show(t, 'object', ['get', 'cm', 'a', '-o', 'yaml']);
  },
  'apply merges containers of a pod and reports immutable fields': async (t) => {
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
  'apply of a custom resource, and an error in it': async (t) => {
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
  'server-side apply, with conflicts': async (t) => {
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
  'server-side apply takes over from client-side apply': async (t) => {
    await run(t, ['apply', '-f', '-'], yamlMap({ k: 'v', l: 'w' }));
    await show(t, 'taken over', ['apply', '--server-side', '-f', '-'], yamlMap({ k: 'v' }));
    await show(t, 'object', ['get', 'cm', 'a', '-o', 'yaml', '--show-managed-fields']);
  },
  'apply with a dry run': async (t) => {
    await show(t, 'client', ['apply', '--dry-run=client', '-f', '-'], yamlMap({ k: 'v' }));
    await show(t, 'server', ['apply', '--dry-run=server', '-f', '-'], yamlMap({ k: 'v' }));
    await show(t, 'server side', ['apply', '--server-side', '--dry-run=server', '-f', '-'], yamlMap({ k: 'v' }));
    await show(t, 'nothing is there', ['get', 'cm', 'a']);
  },
  'apply prunes only what it owns, and reads several documents': async (t) => {
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
};
