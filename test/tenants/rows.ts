// The whole table, and its presentation: what a tenant can try, and the result. infra/generate writes it to docs/security.md.
import { eventRows, forgedReports, tokenRows } from '#test/tenants/events.ts';
import { fieldRows } from '#test/tenants/fields.ts';
import { markRows } from '#test/tenants/mark-rows.ts';
import { type ObjectRow, outcomes } from '#test/tenants/row.ts';

export const objectRows: readonly ObjectRow[] = [...fieldRows, ...markRows];

interface ShownRow {
  readonly where: string;
  readonly reference: string;
  readonly attack: string;
  readonly holds: string;
}

const shown: readonly ShownRow[] = [
  ...objectRows.map(({ kind, ...row }) => ({ ...row, where: kind })),
  ...eventRows.map(({ type, to, attack }) => ({ where: `event to ${to}`, reference: type, attack, holds: 'inert' })),
  ...Object.keys(forgedReports).map((attack) => ({
    where: 'event to sidecar-sync',
    reference: 'dev.bullion.transfer.progressed',
    attack,
    holds: 'inert',
  })),
  ...tokenRows.map(({ token, attack, holds }) => ({ where: 'transfer', reference: token, attack, holds })),
];

const code = (text: string): string => `\`${text}\``;
const list = (texts: Iterable<string>): string => [...new Set(texts)].map(code).join(', ');

/** Rows with the same place, attack and outcome, in the order of the table. */
export const toTenantList = (): readonly string[] =>
  [...Map.groupBy(shown, ({ attack, holds, where }) => JSON.stringify([where, attack, holds])).values()].map(
    (alike) => {
      const { where, attack, holds } = alike[0]!;
      return `**${where}**, to ${attack}: ${holds}: ${list(alike.map(({ reference }) => reference))}`;
    },
  );

/** The meaning of the words in the rows. */
export const toOutcomeList = (): readonly string[] =>
  Object.entries(outcomes).map(([word, text]) => `**${word}**: ${text}`);
