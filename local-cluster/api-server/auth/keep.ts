// Keys that are created once and stored: a server that is killed meanwhile must not find an incomplete one at its next start.
import { renameSync, writeFileSync } from 'node:fs';

/** The file exists completely or not at all. Only its owner can read it. */
export const keepFile = (file: string, text: string): void => {
  const draft = `${file}.part`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
};
