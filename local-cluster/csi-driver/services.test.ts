// The controller service over files: what its callers repeat, and what they must be refused.
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { controller } from '#local-cluster/csi-driver/services.ts';
import { type Storage, openStorage } from '#local-cluster/csi-driver/storage.ts';

let folder: string;
let storage: Storage;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bullion-csi-'));
  storage = await openStorage(folder);
});
afterEach(() => rm(folder, { recursive: true }));

const call = (name: string, request: object): Promise<object> => controller(storage, 'here')[name]!(request);
const aVolume = (name: string, bytes: number, source: object | null = null) => ({
  name,
  capacity_range: { required_bytes: bytes, limit_bytes: 0 },
  volume_content_source: source,
});
const hasLosetup = spawnSync('losetup', ['--version']).error === undefined;
const contentOf = async (name: string): Promise<string> =>
  (await readFile(storage.pathOf(name), 'utf8')).replaceAll('\0', '');

it.each([
  [1, 4096],
  [4096, 4096],
  [4097, 8192],
  [0, 2 ** 30],
])('a volume of %i bytes has %i', async (asked, made) => {
  expect(await call('CreateVolume', aVolume('one', asked))).toMatchObject({ volume: { capacity_bytes: made } });
  expect((await stat(storage.pathOf('one'))).size).toBe(made);
});

it('a repeated call answers the same, and a larger one of the same name is refused', async () => {
  const first = await call('CreateVolume', aVolume('one', 8192));
  await writeFile(storage.pathOf('one'), 'kept', { flag: 'r+' });
  expect(await call('CreateVolume', aVolume('one', 8192))).toEqual(first);
  expect(await contentOf('one')).toBe('kept');
  await expect(call('CreateVolume', aVolume('one', 16_384))).rejects.toThrow('one exists with 8192 bytes');
});

describe.skipIf(!hasLosetup)('copies', () => {
  const fromSnapshot = { snapshot: { snapshot_id: 'then' } };
  const fromVolume = { volume: { volume_id: 'one' } };
  beforeEach(async () => {
    await call('CreateVolume', aVolume('one', 8192));
    await writeFile(storage.pathOf('one'), 'first', { flag: 'r+' });
    await call('CreateSnapshot', { name: 'then', source_volume_id: 'one' });
    await writeFile(storage.pathOf('one'), 'second', { flag: 'r+' });
  });

  it.each([
    ['a snapshot keeps what it was', fromSnapshot, 'first'],
    ['a clone has what it is', fromVolume, 'second'],
  ] as const)('%s, and may be larger', async (_, source, content) => {
    expect(await call('CreateVolume', aVolume('copy', 16_384, source))).toMatchObject({
      volume: { capacity_bytes: 16_384, content_source: source },
    });
    expect([await contentOf('copy'), (await stat(storage.pathOf('copy'))).size]).toEqual([content, 16_384]);
  });

  it('a copy that is smaller than its source is refused, as is one of nothing', async () => {
    await expect(call('CreateVolume', aVolume('copy', 4096, fromSnapshot))).rejects.toThrow(
      'is larger than the 4096 bytes',
    );
    const nothing = { snapshot: { snapshot_id: 'never' } };
    await expect(call('CreateVolume', aVolume('copy', 8192, nothing))).rejects.toThrow('never does not exist');
  });

  it('a snapshot outlives its volume, is found again after a restart, and goes once', async () => {
    const described = await call('CreateSnapshot', { name: 'then', source_volume_id: 'one' });
    await call('DeleteVolume', { volume_id: 'one' });
    storage = await openStorage(folder);
    expect(await call('CreateSnapshot', { name: 'then', source_volume_id: 'one' })).toEqual(described);
    await call('DeleteSnapshot', { snapshot_id: 'then' });
    await call('DeleteSnapshot', { snapshot_id: 'then' });
    expect(await storage.findSnapshot('then')).toBeUndefined();
  });
});

it('a call is refused while another for the same volume runs', async () => {
  const methods = controller(storage, 'here');
  const both = [methods['CreateVolume']!(aVolume('one', 4096)), methods['CreateVolume']!(aVolume('one', 4096))];
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
});

it('an expansion never shrinks', async () => {
  await call('CreateVolume', aVolume('one', 8192));
  const range = (bytes: number) => ({ volume_id: 'one', capacity_range: { required_bytes: bytes, limit_bytes: 0 } });
  expect(await call('ControllerExpandVolume', range(16_384))).toMatchObject({ capacity_bytes: 16_384 });
  expect(await call('ControllerExpandVolume', range(4096))).toMatchObject({ capacity_bytes: 16_384 });
});
