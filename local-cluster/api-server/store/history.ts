// Bounds the change log: forgets states that were superseded long ago, and remembers how far back a watch may reach.
import type { DatabaseSync } from 'node:sqlite';

export interface History {
  /** The oldest version a watch or a page may start from. */
  readonly oldest: () => number;
  /** Called after each change; forgets once twice the limit has gathered. */
  readonly trim: (version: number) => void;
  readonly compact: (version: number) => void;
}

/** A state may go when the change that replaced it is forgotten too; until then a watch needs it as the state before. */
const superseded = `DELETE FROM revisions WHERE version IN (
  SELECT previous FROM revisions WHERE version > ? AND version <= ? AND previous IS NOT NULL)`;
const tombstones = `DELETE FROM revisions WHERE version > ? AND version <= ? AND change = 2`;

export const createHistory = (database: DatabaseSync, limit: number): History => {
  const saved = database.prepare(`SELECT value FROM settings WHERE name = 'oldest'`).get();
  const save = database.prepare(`INSERT OR REPLACE INTO settings VALUES ('oldest', ?)`);
  const deleteSuperseded = database.prepare(superseded);
  const deleteTombstones = database.prepare(tombstones);
  let oldest = Number(saved?.['value'] ?? 0);

  const compact = (version: number): void => {
    if (version <= oldest) return;
    database.exec('BEGIN');
    try {
      deleteSuperseded.run(oldest, version);
      deleteTombstones.run(oldest, version);
      save.run(String(version));
      database.exec('COMMIT');
    } catch (error) {
      database.exec('ROLLBACK');
      throw error;
    }
    oldest = version;
  };

  return {
    oldest: () => oldest,
    trim: (version) => {
      if (version - oldest > limit * 2) compact(version - limit);
    },
    compact,
  };
};
