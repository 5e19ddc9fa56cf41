// Lists of a collection at one version, page by page, without more than a page in memory.
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { type Entry, toChange, type Change, type Key } from './change.ts';

/** The statements that read and write single revisions. */
interface Row extends Key {
  readonly version: number;
  /** Index into `changeTypes`; 2 means deleted. */
  readonly change: number;
  readonly body: string;
}

interface NewRow extends Key {
  readonly change: number;
  readonly previous: number | null;
  readonly body: string;
}

interface Rows {
  readonly newestVersion: () => number;
  /** The current state of an object; undefined when it does not exist. */
  readonly latest: (key: Key) => Row | undefined;
  /** Appends a revision and returns its version. */
  readonly insert: (row: NewRow) => number;
  readonly changesAfter: (collection: string, version: number, limit: number) => Change[];
}

const deleted = 2;

const readRow = (columns: Readonly<Record<string, SQLOutputValue>>) => {
  const { collection, namespace, name, version, change, body, previousBody } = columns;
  return {
    collection: String(collection),
    namespace: String(namespace),
    name: String(name),
    version: Number(version),
    change: Number(change),
    body: String(body),
    previousBody: typeof previousBody === 'string' ? previousBody : undefined,
  };
};

const newest = `SELECT seq AS version FROM sqlite_sequence WHERE name = 'revisions'`;
const latest = `SELECT * FROM revisions WHERE collection = ? AND namespace = ? AND name = ? ORDER BY version DESC LIMIT 1`;
const insert = `INSERT INTO revisions (collection, namespace, name, change, previous, body) VALUES (?, ?, ?, ?, ?, ?)`;
const after = `SELECT r.*, p.body AS previousBody FROM revisions r LEFT JOIN revisions p ON p.version = r.previous
  WHERE r.collection = ? AND r.version > ? ORDER BY r.version LIMIT ?`;

export const createRows = (database: DatabaseSync): Rows => {
  const statements = {
    latest: database.prepare(latest),
    insert: database.prepare(insert),
    after: database.prepare(after),
  };
  const first = database.prepare(newest).get() as { version: number } | undefined;
  let version = first?.version ?? 0;

  return {
    newestVersion: () => version,
    latest: (key) => {
      const row = statements.latest.get(key.collection, key.namespace, key.name) as Row | undefined;
      return row === undefined || row.change === deleted ? undefined : row;
    },
    insert: (row) => {
      const { collection, namespace, name, change, previous, body } = row;
      const { lastInsertRowid } = statements.insert.run(collection, namespace, name, change, previous, body);
      version = Number(lastInsertRowid);
      return version;
    },
    changesAfter: (collection, since, limit) =>
      statements.after.all(collection, since, limit).map((row) => toChange(readRow(row))),
  };
};

/** Where a page starts: after this object in (namespace, name) order. */
export interface Position {
  readonly namespace: string;
  readonly name: string;
}

export interface PageQuery {
  readonly collection: string;
  /** All namespaces when unset. */
  readonly namespace?: string | undefined;
  readonly after?: Position | undefined;
  /** The collection at this version; now when unset. */
  readonly at?: number | undefined;
  readonly limit: number;
}

export interface Page {
  readonly version: number;
  readonly entries: readonly Entry[];
  /** The number of objects after this page. Requires a count: call it only when it is shown. */
  readonly remaining: () => number;
}

/** Within one namespace SQLite uses the index only with the name. */
const behind = (inNamespace: boolean): string =>
  inNamespace ? 'namespace = ? AND name > ?' : '(namespace, name) > (?, ?)';

/** At the newest version: the time depends on the number of objects, not of their revisions. */
const live = (inNamespace: boolean): string => `
  SELECT namespace, name, version FROM live WHERE collection = ? AND version <= ? AND ${behind(inNamespace)}`;

/** At an older version. SQLite takes the bare column `change` from the row with the maximum. */
const past = (inNamespace: boolean): string => `
  SELECT namespace, name, MAX(version) AS version, change FROM revisions
  WHERE collection = ? AND version <= ? AND ${behind(inNamespace)}
  GROUP BY namespace, name HAVING change <> ${deleted}`;

export const createPages = (database: DatabaseSync, rows: Pick<Rows, 'newestVersion'>) => {
  const prepare = (wrap: (inner: string) => string) => ({
    live: { all: database.prepare(wrap(live(false))), one: database.prepare(wrap(live(true))) },
    past: { all: database.prepare(wrap(past(false))), one: database.prepare(wrap(past(true))) },
  });
  const bodies = prepare(
    (inner) => `SELECT r.* FROM (${inner} ORDER BY namespace, name LIMIT ?) k JOIN revisions r ON r.version = k.version
      ORDER BY k.namespace, k.name`,
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
    const timeNow = (): 'live' | 'past' => (version === rows.newestVersion() ? 'live' : 'past');
    const scope = query.namespace === undefined ? 'all' : 'one';
    const found = bodies[timeNow()][scope].all(...argumentsOf(query, version, query.after), query.limit);
    const entries = found.map((row) => toChange(readRow(row)));
    return {
      version,
      entries,
      remaining: () => {
        const counted = counts[timeNow()][scope].get(...argumentsOf(query, version, entries.at(-1) ?? query.after));
        return Number(counted?.['count'] ?? 0);
      },
    };
  };
  return { page };
};
