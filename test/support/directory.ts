// A temporary directory for a test file, removed after its tests.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** Call it at the top of a test file or a `describe`. */
export const temporaryDirectory = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'bullion-test-'));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

/** Shared by several test files of one process: removed when that process ends. */
export const sharedDirectory = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'bullion-test-'));
  process.on('exit', () => rmSync(path, { recursive: true, force: true }));
  return path;
};
