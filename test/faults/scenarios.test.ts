// Every table of scenarios is run by a test, and every scenario that a test or a document names is in a table.
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { copyScenarios } from '#test/faults/golden-copies.ts';
import { cronScenarios } from '#test/faults/golden-cron.ts';
import { policyScenarios } from '#test/faults/golden-policy.ts';
import { scenarios, sharedContent } from '#test/faults/scenarios.ts';

const tables = { scenarios, sharedContent, cronScenarios, policyScenarios, copyScenarios };
const names = Object.values(tables).flatMap((table) => table.map(({ name }) => name));

const root = new URL('../../', import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const files = readdirSync(new URL('.', import.meta.url))
  .filter((path) => path.endsWith('.ts') && path !== 'scenarios.test.ts')
  .map((path) => ({ isTest: path.endsWith('.test.ts'), text: textOf(`test/faults/${path}`) }));
const tests = files.filter(({ isTest }) => isTest).map(({ text }) => text);
const matches = (texts: readonly string[], pattern: RegExp): readonly string[] =>
  texts.flatMap((text) => [...text.matchAll(pattern)]).map(([, found = '']) => found);

describe('scenarios', () => {
  it('are each in one of the tables that tests run', () => {
    const declared = matches(
      files.filter(({ isTest }) => !isTest).map(({ text }) => text),
      /export const (\w+): readonly \w*Scenario\[\]/g,
    );
    expect(declared.toSorted()).toEqual(Object.keys(tables).toSorted());
    expect(matches(tests, /describe\.each\((\w+)\)\('\$name'/g).toSorted()).toEqual(declared.toSorted());
    expect(names.toSorted()).toEqual([...new Set(names)].toSorted());
  });

  it('exist where a test or a document names one', () => {
    const picked = matches(tests, /describe\.each\(\[([^\]]+)\]\)\('%s'/g).flatMap((list) =>
      matches([list], /'([\w-]+)'/g),
    );
    const documents = ['shared/resources/data-import-cron/README.md', 'test/README.md', 'docs/cdi.md'];
    const written = matches(documents.map(textOf), /`faults\/[\w-]+` ([\w-]+)/g);
    expect([picked.length > 0, written.length > 0]).toEqual([true, true]);
    expect([...picked, ...written].filter((name) => !names.includes(name))).toEqual([]);
  });
});
