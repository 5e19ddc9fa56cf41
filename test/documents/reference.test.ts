// docs/reference.md against the code, in both directions: every reason that an object, an Event or an answer can have, and every metric.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explained } from '#cli/commands/explain.ts';

const root = join(import.meta.dirname, '../..');
const reference = readFileSync(join(root, 'docs/reference.md'), 'utf8');
const sectionOf = (title: string): string =>
  reference.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? '';

const sources = ['shared', 'functions', 'events'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/\.test\.ts$|(^|\/)contract\.ts$/.test(path))
    .map((path) => readFileSync(join(root, folder, path), 'utf8')),
);

/** A literal that is a reason by where it stands: after `reason`, before a sentence, or given to what makes a state of it. */
const isReason = (before: string, after: string): boolean =>
  /\b[rR]eason\w*(: string)?\s*[:=]\s*[^,;{}\n]*$/.test(before) ||
  /^,\s*(['"`])(?:(?!\1)[^])*\s(?:(?!\1)[^])*\1/.test(after) ||
  /(failedState|waitFor|terminatingState|obstacle)\([^()]*$/.test(before);

const word = /'([A-Z][a-z]\w+)'/g;

const givenIn = (text: string): readonly string[] =>
  [...text.matchAll(word)]
    .filter(({ 0: { length }, index }) =>
      isReason(text.slice(Math.max(0, index - 90), index), text.slice(index + length, index + length + 300)),
    )
    .map(([, name = '']) => name);

/** Every reason of a transfer, which is the key of a table. */
const transferFaults = (text: string): readonly string[] =>
  [...text.matchAll(/^ {2}([A-Z]\w+): \{ retryable:/gm)].map(([, name = '']) => name);

/** Literals that stand where reasons do, and are none that anybody is shown. */
const others = new Set<string>([
  // Codes of requests to a store, which become reasons of transfers.
  'PreconditionFailed',
  'RangeOutside',
  'UploadNotFound',
  // Where a condition has no reason, which none is without; and a label of a metric.
  'Backup',
  'Overcome',
]);
const given = new Set(sources.flatMap((text) => [...givenIn(text), ...transferFaults(text)]));

const listed = new Set(
  [...`${sectionOf('Reasons')}${sectionOf('Events')}`.matchAll(/`([A-Z][a-z][A-Za-z]+)`/g)].map(
    ([, name = '']) => name,
  ),
);
/** Examples of what Kubernetes says, and what is no reason: conditions and kinds. */
const notOurs = new Set(['ErrImagePull', 'ProvisioningFailed', 'Evicted', 'ApiDenied']);

describe('reasons', () => {
  it('are found in the code by where they stand', () => {
    const text = `{ reason: 'OneReason', message } fail(image, 'TwoReason', 'a sentence'); failedState(state, 'ThreeReason', words); x = 'Other';`;
    expect(givenIn(text)).toEqual(['OneReason', 'TwoReason', 'ThreeReason']);
    expect(given.size).toBeGreaterThan(150);
  });

  it('that the code gives are listed', () => {
    expect([...given].filter((name) => !listed.has(name) && !others.has(name)).toSorted()).toEqual([]);
  });

  it('that the code gives are explained, by bullion explain and with an anchor of the site', () => {
    expect([...given].filter((name) => !others.has(name) && explained(name) === '').toSorted()).toEqual([]);
  });

  it('that are listed are in the code', () => {
    const all = sources.join('\n');
    const isThere = (name: string): boolean => all.includes(`'${name}'`) || new RegExp(`\\b${name}: `).test(all);
    expect([...listed].filter((name) => !notOurs.has(name) && !isThere(name)).toSorted()).toEqual([]);
  });
});

describe('metrics', () => {
  it('are listed, and nothing else is', () => {
    const made = sources.flatMap((text) => [...text.matchAll(/gauge\(\s*'(\w+)'/g)].map(([, name = '']) => name));
    const told = [...sectionOf('Metrics').matchAll(/`((?:bullion|kubevirt)_\w+)`/g)].map(([, name = '']) => name);
    expect(told.toSorted()).toEqual([...new Set(made)].toSorted());
  });
});
