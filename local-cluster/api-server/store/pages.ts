// Lists of a collection as it was at one version, page by page, without holding more than a page in memory.
import type { DatabaseSync } from 'node:sqlite';
import { type Entry, toChange } from './change.ts';
import type { Row, Rows } from './rows.ts';

/** Where a page begins: after this object in (namespace, name) order. */
export interface Position {
  readonly namespace: string;
  readonly name: string;
}

export interface PageQuery {
  readonly collection: string;
  /** All namespaces when left out. */
  readonly namespace?: string | undefined;
  readonly after?: Position | undefined;
  /** The collection as it was at this version; now when left out. */
  readonly at?: number | undefined;
  readonly limit: number;
}

export interface Page {
  readonly version: number;
  readonly entries: readonly Entry[];
  /** How many objects lie behind this page. Costs a count: ask only when it is shown. */
  readonly remaining: () => number;
}

const deleted = 2;

/** SQLite fills the bare column `change` from the row that holds the maximum. In one namespace it finds a place in the index only by name. */
const select = (inNamespace: boolean): string => `
  SELECT namespace, name, MAX(version) AS version, change FROM revisions
  WHERE collection = ? AND version <= ? AND ${inNamespace ? 'namespace = ? AND name > ?' : '(namespace, name) > (?, ?)'}
  GROUP BY namespace, name HAVING change <> ${deleted}`;

export const createPages = (database: DatabaseSync, rows: Pick<Rows, 'newestVersion'>) => {
  const prepare = (wrap: (inner: string) => string) => ({
    all: database.prepare(wrap(select(false))),
    one: database.prepare(wrap(select(true))),
  });
  const bodies = prepare(
    (inner) => `SELECT r.* FROM (${inner} ORDER BY namespace, name LIMIT ?) k JOIN revisions r ON r.version = k.version
      ORDER BY r.namespace, r.name`,
  );
  const counts = prepare((inner) => `SELECT COUNT(*) AS count FROM (${inner})`);

  const argumentsOf = (query: PageQuery, version: number, after: Position | undefined): (string | number)[] => [
    query.collection,
    version,
    query.namespace ?? after?.namespace ?? '',
    after?.name ?? '',
  ];

  const page = (query: PageQuery): Page => {
    const version = query.at ?? rows.newestVersion();
    const scope = query.namespace === undefined ? 'all' : 'one';
    const found = bodies[scope].all(...argumentsOf(query, version, query.after), query.limit) as unknown as Row[];
    const entries = found.map((row) => toChange({ ...row, previousBody: undefined }));
    return {
      version,
      entries,
      remaining: () => {
        const counted = counts[scope].get(...argumentsOf(query, version, entries.at(-1) ?? query.after));
        return Number(counted?.['count'] ?? 0);
      },
    };
  };
  return { page };
};
