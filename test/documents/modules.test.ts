// The sources as modules: no file leads back to itself, not even for its types, and no two exported types of the product have one name.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';

const files = globSync('{shared,events,functions,cli,infra,local-cluster}/**/*.ts')
  .filter((file) => !file.endsWith('.test.ts') && !file.includes('node_modules'))
  .toSorted();
const textOf = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));

const importsOf = (file: string): readonly string[] =>
  [...(textOf.get(file) ?? '').matchAll(/^(?:import|export) [^;]*?from '([#.][^']+)';/gm)]
    .map(([, path = '']) => (path.startsWith('#') ? path.slice(1) : normalize(join(dirname(file), path))))
    .filter((path) => textOf.has(path));

/** A way from a file back to itself, by depth-first search; each file is left once. */
const findCycle = (edgesOf: (file: string) => readonly string[], all: readonly string[]): readonly string[] => {
  const left = new Set<string>();
  const visit = (file: string, way: readonly string[]): readonly string[] => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (left.has(file)) return [];
    for (const next of edgesOf(file)) {
      const cycle = visit(next, [...way, file]);
      if (cycle.length > 0) return cycle;
    }
    left.add(file);
    return [];
  };
  for (const file of all) {
    const cycle = visit(file, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
};

it('finds a cycle where there is one', () => {
  const edges: Readonly<Record<string, readonly string[]>> = { a: ['b'], b: ['c'], c: ['b'] };
  expect(findCycle((file) => edges[file] ?? [], ['a'])).toEqual(['b', 'c', 'b']);
});

it('imports lead to no cycle', () => {
  expect(files.flatMap(importsOf).length).toBeGreaterThan(1000);
  expect(findCycle(importsOf, files)).toEqual([]);
});

it('exported types of the product have names of their own', () => {
  const places = new Map<string, string[]>();
  for (const [file, text] of textOf) {
    if (file.startsWith('local-cluster/')) continue;
    for (const [, name = ''] of text.matchAll(/^export (?:interface|type) (\w+)/gm))
      places.set(name, [...(places.get(name) ?? []), file]);
  }
  expect(places.size).toBeGreaterThan(300);
  expect([...places].filter(([, where]) => where.length > 1)).toEqual([]);
});
