// RULES.md is true: every rule of the originals is in it once, every line it names is in a table, and every rule that is held is sent through kubectl.
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { backends } from '#shared/backends/registry.ts';
import { cronTemplateRules } from '#shared/resources/data-import-cron/template-rules.ts';
import { dataImportCronRules } from '#shared/resources/data-import-cron/rules.ts';
import { dataVolumeRequestRules, dataVolumeRules } from '#shared/resources/data-volume/rules.ts';
import { dataVolumeDefaults } from '#shared/resources/data-volume/defaults.ts';
import { harvesterImageDefaults } from '#shared/resources/harvester-image/defaults.ts';
import { harvesterImageRequestRules, harvesterImageRules } from '#shared/resources/harvester-image/rules.ts';
import { hyperCloudImageRules } from '#shared/resources/hypercloud-image/rules.ts';
import { hyperCloudVolumeRules, pvcRules, volumeRules } from '#shared/resources/hypercloud-volume/rules.ts';
import { imageRules } from '#shared/resources/image-rules.ts';
import { storageClassRules } from '#shared/resources/protected/class-rules.ts';
import { protectedRules } from '#shared/resources/protected/rules.ts';
import { admissionRows } from '#test/support/admission-rows.ts';
import { fillRows } from '#test/support/fill-rows.ts';
import { imageRows } from '#test/support/image-rows.ts';
import { exemptRows } from '#test/support/exempt-rows.ts';
import { protectedRows } from '#test/support/protected-rows.ts';

const text = readFileSync(new URL('RULES.md', import.meta.url), 'utf8');
const rows = text
  .split('\n')
  .filter((line) => /^\| [A-Z]?\d+ \|/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, id = '', rule = '', by = '']) => ({ id, rule, by }));

type Rules = readonly { readonly id: string }[];
const tables: Readonly<Record<string, Rules>> = {
  harvester: [...harvesterImageRules, ...harvesterImageRequestRules],
  hypercloud: hyperCloudImageRules,
  volume: [...pvcRules, ...volumeRules, ...hyperCloudVolumeRules('pvc')],
  'data-volume': [...dataVolumeRules, ...dataVolumeRequestRules, ...dataVolumeDefaults],
  cron: [...dataImportCronRules, ...cronTemplateRules],
  protected: protectedRules,
  class: storageClassRules,
  defaults: harvesterImageDefaults(backends),
  images: imageRules(backends, { backend: '', source: '' }),
};
const elsewhere = ['schema', 'access', 'finalizer', 'backend', 'reading', 'api server'];
const wayOf = ({ by }: (typeof rows)[number]): 'held' | 'better' | 'not ours' => {
  if (by.startsWith('**better**: ')) return 'better';
  return by.startsWith('**not ours**: ') ? 'not ours' : 'held';
};

/** Titles of tests that send the rules they name in brackets. */
const flows = new URL('../../test/flows/', import.meta.url);
const titled = readdirSync(flows)
  .filter((file) => /^admission.*\.test\.ts$/.test(file))
  .map((file) => readFileSync(new URL(file, flows), 'utf8'))
  .flatMap((source) => [...source.matchAll(/\bit\(\s*'[^'\n]*\(([A-Z]?\d+(?:, [A-Z]?\d+)*)\)'/g)])
  .flatMap(([, ids = '']) => ids.split(', '));

/** Rules with a request that passes and one that is refused, or that is filled in and one that is kept. */
const held = new Set([
  ...admissionRows.flatMap(({ ids }) => ids),
  ...[...imageRows, ...protectedRows, ...fillRows].map(({ id }) => id),
  ...titled,
]);
/** Rules with a request that passes although the original refuses it. */
const better = new Set([...exemptRows.flatMap(({ ids }) => ids), ...titled]);

/** What is always let through has no request that is refused. */
const isPassing = (id: string): boolean => id === 'D1' && better.has(id);

const numbered = (prefix: string, from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `${prefix}${from + index}`);

describe('RULES.md', () => {
  it('has every rule of the originals once', () => {
    expect(rows.map(({ id }) => id)).toEqual([
      ...numbered('C', 1, 23),
      ...numbered('U', 1, 11),
      ...numbered('D', 0, 4),
      ...numbered('M', 1, 4),
      ...numbered('P', 1, 22),
      ...numbered('', 1, 45),
      ...numbered('H', 1, 6),
      ...numbered('T', 1, 5),
    ]);
  });

  it('names lines that are there, and gives a reason for what is left out', () => {
    const wrong = rows.filter((row) => {
      if (wayOf(row) !== 'held') return row.by.length < 30;
      const [table = '', id = ''] = row.by.split(' ');
      return !elsewhere.includes(row.by) && tables[table]?.some((rule) => rule.id === id) !== true;
    });
    expect(wrong).toEqual([]);
  });

  it('has a row through kubectl for every rule that is held, and one for what is better', () => {
    const lacking = rows.filter((row) => {
      const way = wayOf(row);
      return way === 'held' ? !held.has(row.id) && !isPassing(row.id) : way === 'better' && !better.has(row.id);
    });
    expect(lacking.map(({ id }) => id)).toEqual([]);
  });

  it('counts', () => {
    const count = (way: ReturnType<typeof wayOf>): number => rows.filter((row) => wayOf(row) === way).length;
    expect({ held: count('held'), better: count('better'), notOurs: count('not ours') }).toEqual({
      held: 104,
      better: 13,
      notOurs: 4,
    });
    expect(Object.values(tables).flat().length).toBeGreaterThan(50);
  });
});
