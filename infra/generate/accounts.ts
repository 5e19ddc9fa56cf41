// Permissions of each service account, from the generated roles: one row per resource. Called by blocks.ts.
import { parseAllDocuments } from 'yaml';
import type { GeneratedManifest } from '#infra/generate/manifest.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { toTable } from '#infra/generate/readme.ts';
import { type Right, rightsOf } from '#infra/generate/rights.ts';

/** One letter for verbs with the same effect. */
const letters = [
  ['c', ['create']],
  ['r', ['get', 'list', 'watch']],
  ['u', ['update', 'patch']],
  ['d', ['delete']],
] as const;

/** Accounts that fit beside each other on a line. */
const tables = [
  ['initialize', 'sidecar-sync', 'cron-tick'],
  ['import-object', 'backup-metadata', 'admission', 'transfer', 'sources', 'metrics'],
] as const;

/** `secrets`, `secrets transfer-keys here`: the resource, its object names if restricted, and `here` if restricted to our own namespace. */
const resourceOf = ({ resource, names, namespace }: Right): string =>
  [`\`${resource}\``, ...names.map((name) => `\`${name}\``), ...(namespace === undefined ? [] : ['here'])].join(' ');

const lettersOf = (rights: readonly Right[]): string =>
  letters
    .map(([letter, verbs]) => (rights.some(({ verb }) => (verbs as readonly string[]).includes(verb)) ? letter : ''))
    .join('');

const toAccountTable = (rights: readonly Right[], accounts: readonly string[]): string => {
  const ours = rights.filter(({ account }) => accounts.includes(account));
  const rows = [...Map.groupBy(ours, resourceOf)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return toTable(
    ['resource', ...accounts],
    rows.map(([resource, all]) => [
      resource,
      ...accounts.map((name) => lettersOf(all.filter(({ account }) => account === name))),
    ]),
  );
};

export const toAccountTables = (): string => {
  const manifests = Object.values(manifestOutputs()).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest),
  );
  const rights = rightsOf(manifests);
  const missing = [...new Set(rights.map(({ account }) => account))].filter(
    (name) => !tables.flat().includes(name as never),
  );
  if (missing.length > 0) throw new Error(`no table has the accounts ${missing.join(', ')}: add them to accounts.ts`);
  return tables.map((accounts) => toAccountTable(rights, accounts)).join('\n\n');
};
