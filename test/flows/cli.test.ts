// The command line with a cluster of its own, and the output that users and scripts get.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ExitCode, exitCodes } from '#cli/command.ts';
import { commands } from '#cli/run.ts';
import { type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { annotations } from '#shared/api/names.ts';
import { buildExecutable, thisPlatform } from '#infra/bundle/executable.ts';
import { buildCli } from '#infra/bundle/package.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { type Said, runBullion } from '#test/support/bullion.ts';
import { type TestCluster, run, startTestCluster } from '#test/support/cluster.ts';
import { untilGone, untilStatus } from '#test/support/until.ts';

const mib = 2 ** 20;

describe('bullion, the command line', { timeout: 300_000 }, () => {
  let dir: string;
  let cluster: TestCluster;
  let server: FileServer;
  let url: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-cli-'));
    const raw = join(dir, 'disk.raw');
    await writeBootDisk(raw, { bytes: 16 * mib, dataBytes: mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, join(dir, 'disk.qcow2')]);
    await writeFile(join(dir, 'page.html'), '<!doctype html><title>not an image</title>');
    server = await startFileServer();
    url = server.offer('disk.qcow2', join(dir, 'disk.qcow2'));
    cluster = await startTestCluster();
  });
  afterAll(async () => {
    await cluster.close();
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });

  const bullion = (...args: readonly string[]) => bullionUntil(new AbortController().signal, ...args);
  const bullionUntil = (signal: AbortSignal, ...args: readonly string[]): Promise<Said> =>
    runBullion([...args, '--kubeconfig', cluster.kubeconfigPath], signal);

  it('imports, shows the progress, and exits when the image is usable', async () => {
    const { code, err } = await bullion('import', 'disk', url, '--storage-class', 'local');
    expect(err).toMatch(/disk: 100% the image is ready to use/);
    expect(code).toBe(exitCodes.done);
  });

  it('lists images, as a table and as JSON', async () => {
    const { out } = await bullion('images', '-o', 'wide');
    expect(out).toMatch(/^NAME +GROUP +READY +PHASE/);
    expect(out).toMatch(/^disk +hypercloud +True +Available +100% +16\.0 MiB +Ready .*qcow2 +local /m);
    expect((await bullion('images', '-A', '-o', 'name')).out).toBe('virtualmachineimage.hypercloud.tmaxanc.com/disk\n');
    const list = JSON.parse((await bullion('images', '-o', 'json')).out) as { items: { status: { state: string } }[] };
    expect(list.items.map(({ status }) => status.state)).toEqual(['Available']);
  });

  let packaging: Promise<unknown> | undefined;
  const packaged = async (): Promise<string> => {
    const packageDir = join(dir, 'package');
    await (packaging ??= buildCli(packageDir));
    return packageDir;
  };

  it('is installed from its package in an empty folder, and is a plugin of kubectl there', async () => {
    const [packageDir, home] = [await packaged(), join(dir, 'home')];
    const { stdout } = await run('npm', ['pack', '--silent', packageDir], { cwd: dir });
    await mkdir(home);
    await run('npm', ['install', '--offline', '--no-audit', join(dir, stdout.trim())], { cwd: home });
    const env = { ...process.env, PATH: `${join(home, 'node_modules', '.bin')}:${process.env['PATH']}` };
    const lines = async (...call: readonly [string, ...string[]]): Promise<string> =>
      (await run(call[0], call.slice(1), { cwd: home, env })).stdout;
    expect(await lines('bullion', '--version')).toMatch(/^bullion \d+\.\d+\.\d+\n$/);
    const list = ['images', '-o', 'name', '--kubeconfig', cluster.kubeconfigPath];
    expect((await readFile(join(packageDir, 'bullion.1'), 'utf8')).split('\n.SS ').length).toBe(1 + commands.length);
    const named = 'virtualmachineimage.hypercloud.tmaxanc.com/disk\n';
    expect(await lines('bullion', ...list)).toBe(named);
    expect(await lines('kubectl', 'bullion', ...list)).toBe(named);
    await expect(lines('bullion', 'why', 'nothing', '--kubeconfig', cluster.kubeconfigPath)).rejects.toMatchObject({
      code: exitCodes.notFound,
    });
  });

  it('is one file with Node inside, that needs nothing else', async () => {
    const [packageDir, out, home] = [await packaged(), join(dir, 'executables'), join(dir, 'alone')];
    const file = await buildExecutable(packageDir, thisPlatform, out);
    await mkdir(home);
    const call = async (...args: readonly string[]) => {
      const all = [...args, '--kubeconfig', cluster.kubeconfigPath];
      const { stdout, stderr } = await run(file, all, { cwd: home, env: { HOME: home, PATH: '' } });
      return { stdout, stderr };
    };
    const named = 'virtualmachineimage.hypercloud.tmaxanc.com/disk\n';
    for (const which of ['first', 'second'])
      expect([which, await call('images', '-o', 'name')]).toEqual([which, { stdout: named, stderr: '' }]);
    await expect(call('why', 'nothing')).rejects.toMatchObject({ code: exitCodes.notFound });
  });

  it('exits with 1 when an import fails, and `why` says what, where and what to do', async () => {
    const page = server.offer('page.html', join(dir, 'page.html'));
    const { code, err } = await bullion('import', 'page', page, '--storage-class', 'local');
    expect(code).toBe(exitCodes.failed);
    expect(err).toMatch(/page: .*HTML/i);
    const { out } = await bullion('why', 'page');
    expect(out).toMatch(/State +Failed/);
    expect(out.replaceAll(/\s+/g, ' ')).toMatch(
      /To do publish a disk image at its source; then: bullion retry page -n \S+/,
    );
    expect(out).toMatch(/^EVENTS$/m);
    expect(out).toMatch(/Warning .*virtualmachineimage\/page/);
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  it('shows the logs of what failed, and follows an import to its end', async () => {
    const { code, out, err } = await bullion('logs', 'page');
    expect(code).toBe(exitCodes.done);
    expect(err).toMatch(/^==> \S+: Succeeded, \S+ old <==\n/);
    expect(out).toMatch(/^\d\d:\d\d:\d\d info {2}transfer ended .*NotADiskImage/m);
    expect((await bullion('logs', 'page', '--raw', '--tail', '1')).out).toMatch(/^\{"time":.*\n$/);
    await bullion('import', 'again', url, '--storage-class', 'local', '--no-wait');
    const { code: end, out: whole } = await bullion('logs', 'again', '-f');
    expect(end).toBe(exitCodes.done);
    expect(whole).toMatch(/transfer ended/);
    expect((await bullion('get', 'images', '-o', 'custom-columns=N:.metadata.name,S:.status.phase')).out).toMatch(
      /^again +Available$/m,
    );
    expect((await bullion('delete', 'again', '--yes')).code).toBe(exitCodes.done);
  });

  it('retries once the cause is fixed', async () => {
    await run('cp', [join(dir, 'disk.qcow2'), join(dir, 'page.html')]);
    const { code, err } = await bullion('retry', 'page');
    expect(err).toMatch(/page starts again[\s\S]*100%/);
    expect(code).toBe(exitCodes.done);
    expect((await bullion('retry', 'page')).code).toBe(exitCodes.failed);
  });

  it('brings a deleted image back with its bytes, and fetches nothing', async () => {
    const key = { namespace: 'default', name: 'page' };
    const { type } = hyperCloudImageKind;
    const claim = { namespace: 'default', name: 'page-image-pvc' };
    const uid = async () => (await cluster.kube.get(persistentVolumeClaims, claim))?.metadata.uid;
    await cluster.kube.mergePatch(type, key, { metadata: { annotations: { [annotations.undeleteFor]: '1h' } } });
    const before = await uid();
    expect((await bullion('delete', 'page', '--yes')).err).toContain('for 60m: bullion undelete hypercloud/page');
    await untilGone(cluster.kube, type, key);
    await rm(join(dir, 'page.html'));
    expect((await bullion('undelete')).out).toMatch(/hypercloud\/page +\S+ ago +16\.0 MiB +in (60|59)m/);
    expect((await bullion('undelete', 'hypercloud/page')).code).toBe(exitCodes.done);
    expect(await untilStatus(cluster.kube, type, key, ({ state }) => state === 'Available')).toMatchObject({
      attempts: 0,
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready', reason: 'Ready' })]),
    });
    expect(await uid()).toBe(before);
    const published = { file: join(dir, 'disk.qcow2'), format: 'qcow2', compression: 'none' };
    await proveIdentical(await diskOf(cluster, claim), published, dir);
    expect((await bullion('undelete')).err).toContain('0 images can be brought back');
    expect((await bullion('undelete', 'hypercloud/page')).code).toBe(exitCodes.notFound);
  });

  it('`why` shows the children of an image', async () => {
    const { out } = await bullion('why', 'hypercloud/disk');
    expect(out.match(/^pvc\/disk-image-pvc +Bound/gm)).toHaveLength(1);
    expect(out).toMatch(/^volumesnapshot\/disk-image-snapshot +Ready/m);
    expect(out).toMatch(/Disk +16\.0 MiB disk, qcow2/);
  });

  it('stops waiting at --timeout, and says that the import continues', async () => {
    const slow = await startFileServer({ bytesPerSecond: 1024 });
    try {
      const place = slow.offer('slow.qcow2', join(dir, 'disk.qcow2'));
      const { code, err } = await bullion('import', 'slow', place, '--storage-class', 'local', '--timeout', '1s');
      expect(code).toBe(exitCodes.timedOut);
      expect(err).toMatch(/the import continues: bullion why slow -n \S+/);
    } finally {
      await slow.close();
    }
  });

  it.each<[string, readonly string[], ExitCode, RegExp]>([
    ['an image that is not there', ['why', 'nothing'], exitCodes.notFound, /there is no image nothing in namespace/],
    ['an unknown command', ['imports'], exitCodes.usage, /there is no command imports/],
    ['a wrong source', ['import', 'x', '/etc/passwd'], exitCodes.usage, /is not a source/],
    ['two files for one download', ['download', 'x', 'a', '-o', 'b'], exitCodes.usage, /a and --output b are two/],
    [
      'a stream that cannot go on',
      ['download', 'x', '-o', '-'],
      exitCodes.usage,
      /- is not a file: an interrupted download resumes/,
    ],
    ['a context that is not there', ['images', '--context', 'x'], exitCodes.usage, /has no context x: it has/],
    [
      'a request that admission rejects',
      ['import', 'x', 'http://a.example/x', '--checksum', 'sha256:ab'],
      exitCodes.failed,
      /spec\.checksum/,
    ],
  ])('answers %s with a message and an exit code', async (_, args, code, words) => {
    const answer = await bullion(...args);
    expect([answer.code, answer.out]).toEqual([code, '']);
    expect(answer.err).toMatch(words);
  });

  it('sends a dry run to the cluster with --dry-run', async () => {
    const { code, out } = await bullion('import', 'maybe', url, '--dry-run', '-o', 'yaml');
    expect([code, out]).toEqual([exitCodes.done, expect.stringContaining('name: maybe')]);
    expect((await bullion('why', 'maybe')).code).toBe(exitCodes.notFound);
  });

  it('completes in bash', async () => {
    const { out } = await bullion('completion', 'bash');
    const complete = (words: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const script = `${out}\nCOMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _bullion; echo "\${COMPREPLY[@]}"`;
        execFile('bash', ['-c', script], (error, stdout) => (error === null ? resolve(stdout.trim()) : reject(error)));
      });
    expect(await complete('bullion im')).toBe('import images');
    expect(await complete('bullion import --sto')).toBe('--storage-class');
    expect(await complete('bullion import --group h')).toBe('hypercloud harvester');
    // What the script asks for.
    expect((await bullion('completion', 'namespaces')).out.split('\n')).toContain('kube-system');
    expect(await bullion('completion', 'contexts')).toMatchObject({ code: exitCodes.done, out: 'bullion\n' });
  });

  it('uploads a file, and downloads the same disk', async () => {
    const file = join(dir, 'disk.qcow2');
    const sent = await bullion('upload', 'sent', file, '--storage-class', 'local', '--backend', 'cdi');
    expect(sent.err).toMatch(/sent: 100% the image is ready to use/);
    expect(sent.code).toBe(exitCodes.done);
    expect((await bullion('upload', 'sent', file)).code).toBe(exitCodes.done);
    const other = await bullion('upload', 'sent', join(dir, 'disk.raw'));
    expect([other.code, other.err]).toEqual([exitCodes.failed, expect.stringContaining('uploaded already')]);
    const back = join(dir, 'back.qcow2');
    const { code, out } = await bullion('download', 'sent', '-o', back, '--compression', 'zstd');
    expect({ code, out }).toEqual({ code: exitCodes.done, out: `${back}\n` });
    await run('qemu-img', ['compare', file, back]);
  });

  it('uploads into a volume, and downloads the disk of a hypercloud image', async () => {
    const file = join(dir, 'disk.qcow2');
    const volume = ['--kind', 'datavolume'];
    expect((await bullion('upload', 'vol', file, ...volume, '--storage-class', 'local')).code).toBe(exitCodes.done);
    await bullion('import', 'own', url, '--storage-class', 'local');
    for (const [name, ...more] of [['vol', ...volume], ['own']] as const) {
      const back = join(dir, `${name}.raw`);
      expect((await bullion('download', name, back, '--format', 'raw', ...more)).code).toBe(exitCodes.done);
      await run('qemu-img', ['compare', '-F', 'raw', file, back]);
    }
  }, 300_000);

  it('lists the disks made from an image before it deletes it, and keeps them', async () => {
    const disk = ['disk', 'root', 'own', '--size', '32Mi', '--storage-class', 'local'];
    expect((await bullion(...disk, '--dry-run')).err).toBe('datavolume/root would be created\n');
    expect((await bullion(...disk)).err).toContain('bullion why datavolume/root -n default');
    const root = { namespace: 'default', name: 'root' };
    const isOver = ({ phase }: DataVolumeStatus) => phase === 'Succeeded' || phase === 'Failed';
    expect((await untilStatus(cluster.kube, dataVolumeKind.type, root, isOver)).phase).toBe('Succeeded');
    expect((await bullion('consumers', 'own')).out).toMatch(/^default +datavolume\/root +- +volumesnapshot\/\S+ /m);
    const refused = await bullion('delete', 'own');
    expect([refused.code, refused.err]).toEqual([
      exitCodes.failed,
      expect.stringMatching(/virtualmachineimage\/own is in use:[\s\S]*root[\s\S]*--yes/),
    ]);
    expect((await bullion('delete', 'own', '--yes', '--dry-run')).err).toMatch(/own would be deleted/);
    // It was downloaded just before: the Job that served it ends with its claim.
    const deleted = await bullion('delete', 'own', '--yes');
    expect([deleted.code, deleted.err]).toEqual([exitCodes.done, expect.stringMatching(/own is deleted\n$/)]);
    expect((await bullion('why', 'own')).code).toBe(exitCodes.notFound);
    expect((await cluster.kube.get(dataVolumeKind.type, root))?.status?.phase).toBe('Succeeded');
  });

  it('says how to continue after Ctrl-C', async () => {
    const { code, err } = await bullionUntil(AbortSignal.abort(), 'upload', 'never', join(dir, 'disk.qcow2'));
    expect([code, err]).toEqual([
      exitCodes.interrupted,
      'bullion: interrupted; run the same command again to resume\n',
    ]);
  });

  it('exports a volume, and shows the progress', async () => {
    const { code, err } = await bullion('export', 'vol', 'local');
    expect(err).toMatch(/vol-export: 100% exported to claim vol-export-export-pvc/);
    expect(code).toBe(exitCodes.done);
    const again = await bullion('export', 'vol', 'local');
    expect([again.code, again.err]).toEqual([exitCodes.failed, expect.stringMatching(/--name/)]);
    const late = await bullion('export', 'nothing', 'local', '--timeout', '1s');
    expect([late.code, late.err]).toEqual([
      exitCodes.timedOut,
      expect.stringContaining('the export continues: bullion why vmve/nothing-export -n default'),
    ]);
  }, 300_000);

  it('reports what is wrong with an upload before it sends any of it', async () => {
    const notes = join(dir, 'notes.txt');
    await writeFile(notes, 'no disk at all\n'.repeat(100));
    const page = await bullion('upload', 'notes', notes);
    expect([page.code, page.err]).toEqual([exitCodes.usage, expect.stringContaining('not a disk image')]);
    const wrong = await bullion('upload', 'wrong', join(dir, 'disk.qcow2'), '--checksum', `sha256:${'0'.repeat(64)}`);
    expect([wrong.code, wrong.err]).toEqual([exitCodes.failed, expect.stringContaining('expected 000')]);
    expect((await bullion('download', 'nope')).code).toBe(exitCodes.notFound);
  });
});
