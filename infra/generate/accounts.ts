// The README table of what each service account may do, from the very roles that are installed. Called by blocks.ts.
import { parseAllDocuments } from 'yaml';
import type { Manifest } from '#infra/generate/manifest.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { toTable } from '#infra/generate/readme.ts';
import { type Right, rightsOf } from '#infra/generate/rights.ts';

const columns = [
  ['may create', ['create']],
  ['may change', ['update', 'patch']],
  ['may delete', ['delete']],
  ['may read', ['get', 'list', 'watch']],
] as const;

/** `secrets`, `secrets transfer-keys here`: the resource, the objects where they are named, and `here` where it is our own namespace alone. */
const wordsOf = ({ resource, names, namespace }: Right): string =>
  [`\`${resource}\``, ...names.map((name) => `\`${name}\``), ...(namespace === undefined ? [] : ['here'])].join(' ');

const cellOf = (rights: readonly Right[], verbs: readonly string[]): string => {
  const words = new Set(rights.filter(({ verb }) => verbs.includes(verb)).map(wordsOf));
  return words.size === 0 ? 'nothing' : [...words].toSorted().join(', ');
};

export const toAccountTable = (): string => {
  const manifests = Object.values(manifestOutputs()).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as Manifest),
  );
  const byAccount = Map.groupBy(rightsOf(manifests), ({ account }) => account);
  return toTable(
    ['account', ...columns.map(([title]) => title)],
    [...byAccount].map(([account, rights]) => [`\`${account}\``, ...columns.map(([, verbs]) => cellOf(rights, verbs))]),
  );
};
