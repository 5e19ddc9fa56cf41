import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createHashes } from '#shared/transfer/resume/hashes.ts';
import { createFileJournal } from '#shared/transfer/resume/journal.ts';
import { Mark } from '#shared/transfer/resume/mark.ts';
import { TransferReport } from '#shared/transfer/report.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { eagerSaving } from '#test/support/eager-saving.ts';
import { type Answer, type Origin, type OriginRequest, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { buildQcow2 } from '#test/support/qcow2-image.ts';
import { convertQcow2 } from '#test/support/qcow2-plans.ts';
import { hasTools } from '#test/support/tools.ts';
import { sha256 } from '#test/support/transfer.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;

const kinds = ['compressed', 'plain', 'hole', 'compressed', 'zero', 'plain'] as const;
const qcow2 = buildQcow2({
  version: 3,
  clusterBits: 16,
  compression: 'zlib',
  hasExtendedL2: false,
  clusters: Array.from({ length: 300 }, (_, index) => kinds[index % kinds.length] ?? 'hole'),
  shortSectors: 3,
  order: [3, 1, 4, 1, 5, 9, 2, 6],
  gap: 100,
}).file;
const raw = Buffer.concat([noise('r', 5 * mib), Buffer.alloc(3 * mib), noise('s', 6 * mib + 512)]);

interface Published {
  readonly file: Buffer;
  readonly disk: () => Buffer;
}
const published: Readonly<Record<string, Published>> = {
  'a plain disk': { file: raw, disk: () => raw },
  'a qcow2': { file: qcow2, disk: () => convertQcow2(qcow2) ?? Buffer.alloc(0) },
};

const firstOf = ({ headers }: OriginRequest): number => Number(/bytes=(\d+)/.exec(headers.range ?? '')?.[1] ?? 0);

interface Place {
  readonly folder: string;
  readonly origin: Origin;
  readonly spec: TransferSpec;
  /** What the origin does from now on. */
  readonly answer: (respond: (request: OriginRequest) => Answer) => void;
}

type Asked = Partial<Pick<TransferSpec, 'checksum'>> & { readonly volumeMode?: 'Filesystem' | 'Block' };

const withPlace = async (asked: Asked, work: (place: Place) => Promise<void>): Promise<void> => {
  let respond: (request: OriginRequest) => Answer = () => ({ status: 503 });
  const origin = await startOrigin((request) => respond(request));
  const folder = mkdtempSync(join(root, 'place-'));
  const { volumeMode = 'Filesystem', checksum } = asked;
  const path = join(folder, 'disk.img');
  const capacityBytes = 32 * mib;
  if (volumeMode === 'Block') writeFileSync(path, Buffer.alloc(capacityBytes, 0xee));
  const spec = TransferSpec.parse({
    mode: 'import',
    source: { type: 'http', url: `${origin.url}/disk` },
    checksum,
    target: { path, volumeMode, capacityBytes },
    scratchDir: join(folder, 'scratch'),
    limits: { retries: 0, idleSeconds: 20 },
    allowedAddresses: ['127.0.0.0/8'],
  });
  try {
    await work({ folder, origin, spec, answer: (next) => (respond = next) });
  } finally {
    await origin.close();
  }
};

const attempt = async ({ spec }: Place, signal = new AbortController().signal) => {
  const lines: string[] = [];
  const report = await runTransfer(spec, {
    run: 'run-1',
    signal,
    send: () => Promise.resolve(),
    log: (message) => lines.push(message),
    saving: eagerSaving,
  });
  return { report: TransferReport.parse(report), lines };
};

/** No content of the file from this offset on is ever sent. Tables are: they are requested in small pieces. */
const upTo =
  (file: Buffer, end: number) =>
  (request: OriginRequest): Answer => {
    const answer = fileAnswer(request, file);
    const length = answer.body?.length ?? 0;
    return length < 512 * 1024 ? answer : { ...answer, pace: 2, stallAfter: Math.max(0, end - firstOf(request)) };
  };

const readMark = ({ spec, folder }: Place): Mark | undefined => {
  const path = join(folder, spec.target?.volumeMode === 'Block' ? 'disk.img' : 'disk.img.partial.journal');
  if (!existsSync(path)) return undefined;
  const bytes = readFileSync(path).subarray(-4096);
  const start = bytes.indexOf('{"key"');
  return start === -1 ? undefined : Mark.parse(JSON.parse(bytes.subarray(start).toString().replaceAll('\0', '')));
};

/** An attempt that is cancelled in the middle. Gives its mark. */
const endedAttempt = async (place: Place, file: Buffer): Promise<Mark> => {
  place.answer(upTo(file, file.length - 3 * mib));
  const control = new AbortController();
  const attempting = attempt(place, control.signal);
  await expect.poll(() => readMark(place)?.position ?? 0).toBeGreaterThanOrEqual(2 * mib);
  control.abort();
  expect((await attempting).report).toMatchObject({ outcome: 'failed', retryable: true });
  return readMark(place) as Mark;
};

const digestOf = async (algorithm: string, bytes: Buffer): Promise<string> => {
  const hashes = await createHashes([algorithm], 'never');
  hashes.update(bytes);
  return hashes.digests()[algorithm] ?? '';
};

const goesOn = 'resuming where an earlier process stopped';
const startsOver = 'starting over, because the kept part did not match';

describe.skipIf(!hasTools('qemu-img')).each(Object.entries(published))('%s', (_, { file, disk }) => {
  it.each(['Filesystem', 'Block'] as const)('resumes in another process, into a %s', async (volumeMode) => {
    await withPlace(
      { volumeMode, checksum: { algorithm: 'sha512', hex: await digestOf('sha512', file) } },
      async (place) => {
        const { origin, answer, spec, folder } = place;
        const { position } = await endedAttempt(place, file);
        expect(existsSync(join(folder, 'disk.img'))).toBe(volumeMode === 'Block');

        const before = origin.requests.length;
        answer((request) => fileAnswer(request, file));
        const { report, lines } = await attempt(place);
        expect(lines).toContain(goesOn);
        expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(file) } });
        const made = readFileSync(spec.target?.path ?? '');
        const wanted = disk();
        expect(made.subarray(0, wanted.length).equals(wanted)).toBe(true);
        expect(made.subarray(wanted.length).every((byte) => byte === 0)).toBe(true);
        const asked = origin.requests.slice(before).map(firstOf);
        // Tables may be anywhere; a plain disk has none.
        const isNeeded = (at: number) => file !== raw || at >= position || at < 300 * 1024;
        expect(asked.filter((at) => !isNeeded(at))).toEqual([]);
        expect(report.receivedBytes).toBeLessThan(file.length - mib);
        expect(readdirSync(folder).toSorted()).toEqual(['disk.img']);
      },
    );
  });

  it('starts over when a different file has been published since', async () => {
    await withPlace({}, async (place) => {
      await endedAttempt(place, file);
      const other = Buffer.concat([noise('other', 9 * mib)]);
      place.answer((request) => fileAnswer(request, other, { etag: '"v2"' }));
      const { report, lines } = await attempt(place);
      expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(other) } });
      expect(lines).not.toContain(goesOn);
      expect(readFileSync(join(place.folder, 'disk.img')).equals(other)).toBe(true);
    });
  });

  it('starts over when the saved state does not match', async () => {
    const checksum = { algorithm: 'sha256', hex: sha256(file) } as const;
    await withPlace({ checksum }, async (place) => {
      const { folder } = place;
      // The server changes a byte behind a validator that stays.
      const lie = Buffer.from(file);
      lie[mib] = (lie[mib] ?? 0) ^ 0xff;
      await endedAttempt(place, lie);
      place.answer((request) => fileAnswer(request, file));
      const { report, lines } = await attempt(place);
      expect(lines).toContain(startsOver);
      expect(report).toMatchObject({ outcome: 'succeeded' });
      expect(readFileSync(join(folder, 'disk.img')).equals(disk())).toBe(true);
    });
  });

  it('completes after repeated SIGKILL', { timeout: 240_000 }, async () => {
    await withPlace({}, async (place) => {
      place.answer(upTo(file, file.length - 3 * mib));
      const script = fileURLToPath(new URL('../../../test/support/eager-transfer.ts', import.meta.url));
      let position = 0;
      for (let kill = 0; kill < 2; kill += 1) {
        const child = spawn(process.execPath, [script, JSON.stringify(place.spec)], { stdio: 'ignore' });
        const ended = once(child, 'exit');
        const before = position;
        const isFurther = () => (position = readMark(place)?.position ?? 0) > before;
        // The next kill is of the process that went on from here.
        await expect.poll(isFurther).toBe(true);
        child.kill('SIGKILL');
        await ended;
      }
      place.answer((request) => fileAnswer(request, file));
      const { report, lines } = await attempt(place);
      expect(lines).toContain(goesOn);
      expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(file) } });
      expect(readFileSync(join(place.folder, 'disk.img')).equals(disk())).toBe(true);
    });
  });
});

describe('a journal', () => {
  it('is empty until it was written completely, and deleted once removed', async () => {
    const path = join(mkdtempSync(join(root, 'journal-')), 'journal');
    const journal = createFileJournal(path);
    expect(await journal.read()).toBeUndefined();
    await journal.write('one');
    await journal.write('two');
    expect(await journal.read()).toBe('two');
    await journal.remove();
    expect(await journal.read()).toBeUndefined();
  });
});
