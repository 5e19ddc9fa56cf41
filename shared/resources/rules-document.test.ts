// RULES.md, the rule tables and the rows that are sent through kubectl list the same rules: a rule that is missing in one of them fails here.
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { backends } from '#shared/backends/registry.ts';
import { addressRules } from '#shared/resources/address-rule.ts';
import { cronTemplateRules } from '#shared/resources/data-import-cron/rules.ts';
import { dataImportCronRules } from '#shared/resources/data-import-cron/rules.ts';
import { dataVolumeRequestRules, dataVolumeRules } from '#shared/resources/data-volume/rules.ts';
import { dataVolumeDefaults } from '#shared/resources/data-volume/defaults.ts';
import { dataSourceRules } from '#shared/resources/data-source/rules.ts';
import { policySpecRules } from '#shared/resources/golden-image-policy/channels.ts';
import { goldenImagePolicyRules } from '#shared/resources/golden-image-policy/rules.ts';
import { harvesterImageDefaults } from '#shared/resources/harvester-image/defaults.ts';
import { harvesterImageRequestRules, harvesterImageRules } from '#shared/resources/harvester-image/rules.ts';
import { hyperCloudImageRules } from '#shared/resources/hypercloud-image/rules.ts';
import { hyperCloudVolumeRules, pvcRules, volumeRules } from '#shared/resources/hypercloud-volume/rules.ts';
import { imageRules } from '#shared/resources/image-rules.ts';
import { storageClassRules } from '#shared/resources/protected/class-rules.ts';
import { protectedRules } from '#shared/resources/protected/rules.ts';
import { limitSpecRules } from '#shared/resources/tenant-limit/rules.ts';
import { volumeExportRequestRules, volumeExportRules } from '#shared/resources/volume-export/rules.ts';
import { admissionRows } from '#test/support/admission-rows.ts';
import { fillRows } from '#test/support/fill-rows.ts';
import { imageRows } from '#test/support/image-rows.ts';
import { exemptRows } from '#test/support/exempt-rows.ts';
import { protectedRows } from '#test/support/protected-rows.ts';

const root = new URL('../../', import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, root), 'utf8');
/** TypeScript files of these folders. */
const sourcesIn = (...folders: readonly string[]): readonly string[] =>
  folders.flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => `${folder}/${path}`),
  );

interface Line {
  /** `<table>/<id>` */
  readonly id: string;
  /** Numbers of the rule in its original. */
  readonly original: string;
  readonly by: string;
}

const lines: readonly Line[] = textOf('shared/resources/RULES.md')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, id = '']) => /^[a-z0-9-]+\/[a-z0-9-]+$/.test(id))
  .map(([, id = '', , original = '', by = '']) => ({ id, original, by }));
const ids = lines.map(({ id }) => id);

/** Some rules apply to creations and to changes. */
const isFirst = ({ id }: { readonly id: string }, place: number, all: readonly { readonly id: string }[]): boolean =>
  all.findIndex((one) => one.id === id) === place;

type Rules = readonly { readonly id: string }[];
const tables: Readonly<Record<string, Rules>> = {
  any: addressRules(() => false).filter(isFirst),
  images: imageRules(backends, { backend: '', source: '' }),
  harvester: [...harvesterImageRules, ...harvesterImageRequestRules],
  defaults: harvesterImageDefaults(backends),
  protected: protectedRules,
  class: storageClassRules,
  'data-volume': [...dataVolumeRules, ...dataVolumeRequestRules, ...dataVolumeDefaults],
  cron: [...dataImportCronRules.filter(isFirst), ...cronTemplateRules],
  'data-source': dataSourceRules.filter(isFirst),
  policy: [...policySpecRules, ...goldenImagePolicyRules.filter(isFirst)],
  limit: limitSpecRules,
  hypercloud: hyperCloudImageRules,
  pvc: [...pvcRules, ...hyperCloudVolumeRules('pvc')],
  volume: [...volumeRules, ...hyperCloudVolumeRules('volume')],
  export: [...volumeExportRules, ...volumeExportRequestRules],
};
const ruled = Object.entries(tables).flatMap(([table, rules]) => rules.map(({ id }) => `${table}/${id}`));

/** Other places that implement rules. */
const elsewhere = ['schema', 'access', 'finalizer', 'backend', 'reading', 'api server'];

type Way = 'table' | 'elsewhere' | 'others' | 'better' | 'not ours';
const wayOf = ({ by }: Line): Way | undefined => {
  if (by === 'table') return 'table';
  if (elsewhere.includes(by)) return 'elsewhere';
  const reason = /^\*\*(better|not ours)\*\*: .{20}/.exec(by)?.[1] as 'better' | 'not ours' | undefined;
  const others = /^rules of (.+)$/.exec(by)?.[1]?.split(', ') ?? [];
  const areThere = others.length > 0 && others.every((name) => [...Object.keys(tables), ...elsewhere].includes(name));
  return reason ?? (areThere ? 'others' : undefined);
};

/** Rules in brackets in a text, of tables that RULES.md has. */
const bracketed = (text: string): readonly string[] => {
  const rule = `(?:${[...new Set(ids.map((id) => id.split('/')[0]))].join('|')})/[\\w-]+`;
  return [...text.matchAll(new RegExp(`\\((${rule}(?:, ${rule})*)\\)`, 'g'))].flatMap(([, all = '']) =>
    all.split(', '),
  );
};
const titles = sourcesIn('test/flows')
  .filter((path) => /\/admission[^/]*\.test\.ts$/.test(path))
  .flatMap((path) => textOf(path).match(/\bit\(\s*'[^'\n]*'/g) ?? [])
  .flatMap(bracketed);

/** Rules with an accepted and a rejected request, or with a default that is set and a value that is kept. */
const held = [...[...admissionRows, ...imageRows, ...protectedRows, ...fillRows].map(({ id }) => id), ...titles];
/** Rules with an accepted request that the original rejects. */
const better = [...exemptRows.flatMap((row) => row.ids), ...titles];

/** How often each is there. */
const sorted = (all: Iterable<string>): readonly string[] => [...all].toSorted((a, b) => a.localeCompare(b));
const numbered = (prefix: string, from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `${prefix}${from + index}`);

describe('RULES.md', () => {
  it('lists every rule of the originals once', () => {
    expect(sorted(lines.flatMap(({ original }) => (original === '' ? [] : original.split(', '))))).toEqual(
      sorted([
        ...numbered('C', 1, 23),
        ...numbered('U', 1, 11),
        ...numbered('D', 0, 4),
        ...numbered('M', 1, 4),
        ...numbered('P', 1, 22),
        ...numbered('', 1, 45),
        ...numbered('H', 1, 6),
        ...numbered('T', 1, 5),
      ]),
    );
  });

  it('lists every rule of a table, and each of its own once', () => {
    expect(ruled.filter((id) => !ids.includes(id))).toEqual([]);
    expect(sorted(ids)).toEqual(sorted(new Set(ids)));
  });

  it('names for each rule only places that contain it', () => {
    const wrong = lines.filter((line) => {
      const way = wayOf(line);
      return way === undefined || ruled.includes(line.id) !== (way === 'table' || way === 'others');
    });
    expect(wrong).toEqual([]);
  });

  it('has a kubectl scenario for every rule that is kept or improved', () => {
    const lacking = lines.filter((line) => {
      const way = wayOf(line);
      if (way === 'better') return !better.includes(line.id);
      return (way === 'table' || way === 'elsewhere') && !held.includes(line.id);
    });
    expect(lacking.map(({ id }) => id)).toEqual([]);
  });

  it('lists every rule that a row, a title or a comment names', () => {
    const named = sourcesIn('shared', 'functions', 'infra', 'test').flatMap((path) => bracketed(textOf(path)));
    expect(named.length).toBeGreaterThan(titles.length);
    expect([...held, ...better, ...named].filter((id) => !ids.includes(id))).toEqual([]);
  });
});

describe('rule tables', () => {
  it('are all compared with RULES.md', () => {
    const declared = sourcesIn('shared')
      .filter((path) => !path.endsWith('.test.ts'))
      .flatMap((path) => [...textOf(path).matchAll(/\bid: '([^'\n]+)',\s*(?:on|types|reason|check|fill)\b/g)])
      .map(([, id = '']) => id);
    // What both kinds of volumes have is written once.
    const { pvc: _, ...rest } = tables;
    expect(sorted(declared)).toEqual(sorted([...Object.values(rest).flat(), ...pvcRules].map(({ id }) => id)));
  });
});
