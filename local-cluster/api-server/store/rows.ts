// The statements that read and write single revisions.
import type { DatabaseSync } from 'node:sqlite';
import { type Change, type Key, toChange } from './change.ts';

export interface Row extends Key {
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

export interface Rows {
  readonly newestVersion: () => number;
  /** The live state of an object; undefined when it does not exist. */
  readonly latest: (key: Key) => Row | undefined;
  /** Appends a revision and returns its version. */
  readonly insert: (row: NewRow) => number;
  readonly changesAfter: (collection: string, version: number, limit: number) => Change[];
}

const deleted = 2;

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
      (statements.after.all(collection, since, limit) as unknown as (Row & { previousBody: string | null })[]).map(
        (row) => toChange({ ...row, previousBody: row.previousBody ?? undefined }),
      ),
  };
};
