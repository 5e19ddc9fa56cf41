// The plugin for krew: archives that have what the manifest says, of the platforms that were built.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { writeKrew } from './krew.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const root = join(import.meta.dirname, '../..');

const folders = (...platforms: readonly string[]) => {
  const dir = temporaryDirectory();
  const [executables, to] = [join(dir, 'executables'), join(dir, 'to')];
  for (const folder of [executables, to]) mkdirSync(folder);
  for (const platform of platforms) {
    const file = join(executables, `bullion-${platform}`);
    writeFileSync(file, `#!/bin/sh\necho ${platform}\n`);
    chmodSync(file, 0o755);
  }
  return { executables, to, license: root };
};

interface Manifest {
  readonly spec: {
    readonly version: string;
    readonly platforms: readonly {
      readonly selector: { readonly matchLabels: object };
      readonly uri: string;
      readonly sha256: string;
      readonly bin: string;
    }[];
  };
}

describe('the plugin for krew', () => {
  it('names an archive for each platform that was built, with its digest, and what is missing', async () => {
    const places = folders('linux-x64', 'darwin-arm64');
    const { files, missing } = await writeKrew(places, '1.2.3', 'https://downloads.example/v1.2.3');
    expect(missing).toEqual(['linux-arm64', 'darwin-x64']);
    const { spec } = parse(readFileSync(files.at(-1)!, 'utf8')) as Manifest;
    expect(spec.version).toBe('v1.2.3');
    expect(spec.platforms.map(({ selector, uri }) => [selector.matchLabels, uri])).toEqual([
      [{ os: 'linux', arch: 'amd64' }, 'https://downloads.example/v1.2.3/bullion-linux-x64.tar.gz'],
      [{ os: 'darwin', arch: 'arm64' }, 'https://downloads.example/v1.2.3/bullion-darwin-arm64.tar.gz'],
    ]);
    const [{ sha256, bin }] = spec.platforms as [Manifest['spec']['platforms'][number]];
    expect(createHash('sha256').update(readFileSync(files[0]!)).digest('hex')).toBe(sha256);
    // As krew does: unpack, and run what `bin` names.
    execFileSync('tar', ['-xzf', files[0]!, '-C', places.to]);
    expect(execFileSync(join(places.to, bin), { encoding: 'utf8' })).toBe('linux-x64\n');
    expect(existsSync(join(places.to, 'LICENSE'))).toBe(true);
  });

  it('has what krew demands of a manifest', async () => {
    const { files } = await writeKrew(folders('linux-x64', 'linux-arm64'), '1.2.3', 'https://downloads.example/v1.2.3');
    expect(parse(readFileSync(files.at(-1)!, 'utf8'))).toMatchObject({
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: expect.stringMatching(/^[\w-]+$/) },
      spec: {
        version: expect.stringMatching(/^v\d+\.\d+\.\d+$/),
        // One line, and short enough for a table.
        shortDescription: expect.stringMatching(/^.{1,50}$/),
        platforms: ['amd64', 'arm64'].map((arch) => ({
          selector: { matchLabels: { os: 'linux', arch } },
          uri: expect.stringMatching(/^https:\/\//),
          sha256: expect.stringMatching(/^[a-f0-9]{64}$/),
          files: expect.arrayContaining([{ from: 'LICENSE', to: '.' }]),
          bin: expect.stringMatching(/./),
        })),
      },
    });
  });

  it('has the same bytes for the same executable', async () => {
    const [one, two] = await Promise.all([
      writeKrew(folders('linux-x64'), '1.2.3', 'x'),
      writeKrew(folders('linux-x64'), '1.2.3', 'x'),
    ]);
    const bytes = ({ files }: typeof one) => files.map((file) => readFileSync(file, 'base64'));
    expect(bytes(one)).toEqual(bytes(two));
  });

  it('is not written without an executable', async () =>
    expect((await writeKrew(folders(), '1.2.3', 'x')).files).toEqual([]));
});
