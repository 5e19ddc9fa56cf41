// Backend names are compared only in their own folder; and every known name is served, or the error names another one.
import { readFile, readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { backendNames } from '#shared/api/harvester/image.ts';
import { backends, registrationOf } from '#shared/backends/registry.ts';

const root = new URL('../../', import.meta.url);

/** Files that may name a backend: the registry, the kind whose default it is, and the folders themselves. */
const mayName = new RegExp(
  String.raw`^shared/backends/registry\.ts$|^shared/backends/(${backendNames.join('|')})/|^shared/api/|/dialect\.ts$`,
);

const sources = async (folder: string): Promise<readonly string[]> =>
  (await readdir(new URL(folder, root), { recursive: true }))
    .map((file) => `${folder}/${file}`)
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !mayName.test(file));

describe('the registry', () => {
  it.each([...backendNames, 'tape'])('returns %s, or says what to use instead', (name) => {
    const registration = registrationOf(backends, name);
    expect(registration.served || registration.because.length > 20).toBe(true);
  });

  it('is the only place that compares names', async () => {
    const files = (await Promise.all(['shared', 'functions', 'events'].map(sources))).flat();
    const named = new RegExp(`[=!]==? *'(${backendNames.join('|')})'|case '(${backendNames.join('|')})'`);
    const texts = await Promise.all(
      files.map(async (file) => [file, await readFile(new URL(file, root), 'utf8')] as const),
    );
    expect(texts.filter(([, text]) => named.test(text)).map(([file]) => file)).toEqual([]);
  });
});
