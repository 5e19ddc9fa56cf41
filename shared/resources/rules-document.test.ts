// RULES.md is true: every rule of the originals is in it once, and every line it names is in a table.
import { readFileSync } from 'node:fs';
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
import { protectedRules } from '#shared/resources/protected/rules.ts';

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
  defaults: harvesterImageDefaults(backends),
  images: imageRules(backends, { backend: '', source: '' }),
};
const elsewhere = ['schema', 'access', 'finalizer', 'backend', 'api server'];

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
    const wrong = rows.filter(({ by }) => {
      if (by.startsWith('**not**: ')) return by.length < 13;
      const [table = '', id = ''] = by.split(' ');
      return !elsewhere.includes(by) && tables[table]?.some((rule) => rule.id === id) !== true;
    });
    expect(wrong).toEqual([]);
  });

  it('counts', () => {
    const left = rows.filter(({ by }) => by.startsWith('**not**'));
    expect({ all: rows.length, held: rows.length - left.length, left: left.length }).toEqual({
      all: 121,
      held: 91,
      left: 30,
    });
    expect(Object.values(tables).flat().length).toBeGreaterThan(50);
  });
});
