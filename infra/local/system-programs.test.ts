import { describe, expect, it } from 'vitest';
import { ensurePrograms, qemuImg } from '#infra/local/system-programs.ts';

const nowhere = '/nonexistent';

const aHost = (given: { readonly isRoot?: boolean; readonly hasApt?: boolean; readonly path?: string }) => {
  const executed: string[] = [];
  const execute = async (program: string, args: readonly string[]): Promise<void> => {
    executed.push([program, ...args].join(' '));
  };
  return { host: { isRoot: true, hasApt: true, path: nowhere, execute, ...given }, executed };
};
const silent = (): void => undefined;

describe('ensurePrograms', () => {
  it('does nothing when everything is installed', async () => {
    const { host, executed } = aHost({ path: '/nonexistent:/bin' });
    await ensurePrograms(
      [
        { program: 'sh', package: 'dash' },
        { program: '/bin/sh', package: 'dash' },
      ],
      silent,
      host,
    );
    expect(executed).toEqual([]);
  });

  it('installs each missing package once as root, and reports when that did not help', async () => {
    const { host, executed } = aHost({});
    const programs = [qemuImg, { program: 'qemu-io', package: 'qemu-utils' }];
    await expect(ensurePrograms(programs, silent, host)).rejects.toThrow(/still missing .*: qemu-img, qemu-io/);
    expect(executed).toEqual(['apt-get update', 'apt-get install -y --no-install-recommends qemu-utils']);
  });

  it.each([
    [{ isRoot: false }, 'qemu-img missing: sudo apt-get install -y --no-install-recommends qemu-utils'],
    [{ hasApt: false }, 'qemu-img missing: install the Debian packages qemu-utils'],
  ])('says what to do when it may not install: %j', async (given, message) => {
    const { host, executed } = aHost(given);
    await expect(ensurePrograms([qemuImg], silent, host)).rejects.toThrow(message);
    expect(executed).toEqual([]);
  });
});
