// Keys that are made once and kept: a server that dies while it makes them must not find half of one at its next start.
import { renameSync, writeFileSync } from 'node:fs';

/** The file is there whole or not at all. Only its owner can read it. */
export const keepFile = (file: string, text: string): void => {
  const draft = `${file}.part`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
};
