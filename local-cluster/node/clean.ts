// Takes the node down, whatever state it is in: after its end, an interruption or a crash. It asks nothing of the node's programs, so that it works when they are
// dead or hang. Called by start.ts and main.ts.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, readlink, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type NodePaths, cgroup, network } from '#local-cluster/node/layout.ts';
import { stopLeftover } from '#local-cluster/real-api-server/process.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

const exec = promisify(execFile);
/** Folders that containerd, the kubelet and CNI make wherever their data is: removed once they are empty, innermost first. */
const fixedFolders = [
  '/run/containerd/runc',
  '/run/containerd/s',
  '/run/containerd',
  '/var/lib/kubelet/device-plugins',
  '/var/lib/kubelet',
  '/var/lib/cni/results',
  '/var/lib/cni',
  '/var/log/containers',
];

/** Held by who cleans. */
const lockFile = 'cluster.pid';
const forwarding = '/proc/sys/net/ipv4/ip_forward';
const forwardingBefore = (dataDir: string): string => join(dataDir, 'ip_forward');

/** The one setting of the machine that is changed; `cleanNode` restores it. */
export const allowForwarding = async ({ dataDir }: NodePaths): Promise<void> => {
  await writeFile(forwardingBefore(dataDir), await readFile(forwarding, 'utf8'));
  await writeFile(forwarding, '1');
};

/** What must not be left, each in the order in which it can go. Throws Unavailable with what stayed. */
export const cleanNode = async (paths: NodePaths): Promise<void> => {
  for (const file of await pidFiles(paths)) await stopLeftover(file);
  await killAll(() => processesOf(paths));
  for (const path of await mountsBelow(paths.dataDir)) await exec('umount', ['-l', path]).catch(() => undefined);
  for (const device of await loopsOf(paths.dataDir)) await exec('losetup', ['-d', device]).catch(() => undefined);
  // What is not there is gone.
  await exec('ip', ['link', 'delete', network.link]).catch(() => undefined);
  for (const family of ['ip', 'ip6'])
    await exec('nft', ['delete', 'table', family, 'kube-proxy']).catch(() => undefined);
  await removeGroups();
  await removeLogLinks(paths.dataDir);
  await removeFixed();
  const before = await readFile(forwardingBefore(paths.dataDir), 'utf8').catch(() => undefined);
  if (before !== undefined) await writeFile(forwarding, before);
  const left = await untilNothingLeft(paths.dataDir);
  if (left.length > 0)
    throw new Unavailable(`the node left ${left.join(', ')}: end what uses them, and run npm run cluster -- --clean`);
  for (const name of await readdir(paths.dataDir).catch(() => []))
    if (name !== lockFile) await rm(join(paths.dataDir, name), { recursive: true, force: true });
};

/** A device is detached when the last process that has it open has ended. */
const untilNothingLeft = async (dataDir: string): Promise<readonly string[]> => {
  for (let tries = 0; ; tries += 1) {
    const left = [...(await mountsBelow(dataDir)), ...(await loopsOf(dataDir))];
    if (left.length === 0 || tries === 100) return left;
    await sleep(100);
  }
};

/** Last started, first stopped: their names begin with a number. */
const pidFiles = async ({ pids }: NodePaths): Promise<readonly string[]> =>
  (await readdir(pids).catch(() => [])).toSorted((a, b) => b.localeCompare(a)).map((name) => join(pids, name));

/** Containers are in the node's control group; shims name its socket. */
const processesOf = async ({ socket }: NodePaths): Promise<readonly number[]> => {
  const inGroups = await Promise.all(
    (await groups()).map((group) => readFile(join(group, 'cgroup.procs'), 'utf8').catch(() => '')),
  );
  const contained = inGroups.flatMap((text) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map(Number),
  );
  const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const named: number[] = [];
  for (const pid of all) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (/^\S*containerd/.test(command) && command.split('\0').includes(socket)) named.push(Number(pid));
  }
  return [...new Set([...contained, ...named])].filter((pid) => pid !== process.pid);
};

const killAll = async (find: () => Promise<readonly number[]>): Promise<void> => {
  for (let tries = 0; tries < 100; tries += 1) {
    const pids = await find();
    if (pids.length === 0) return;
    for (const pid of pids) kill(pid);
    await sleep(50);
  }
};

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
};

const cgroups = '/sys/fs/cgroup';

/** One hierarchy with cgroup v2, else one for each controller. */
const hierarchies = async (): Promise<readonly string[]> => {
  if (existsSync(join(cgroups, 'cgroup.controllers'))) return [cgroups];
  const entries = await readdir(cgroups, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(cgroups, name));
};

/** The kubelet takes it as it is. */
export const makeGroup = async (): Promise<void> => {
  for (const hierarchy of await hierarchies()) await mkdir(join(hierarchy, cgroup), { recursive: true });
};

/** Deepest first. */
const groups = async (): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const hierarchy of await hierarchies()) {
    const top = join(hierarchy, cgroup);
    if (!existsSync(top)) continue;
    const inside = await readdir(top, { recursive: true, withFileTypes: true });
    found.push(
      ...inside.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name)),
      top,
    );
  }
  return found.toSorted((a, b) => b.length - a.length);
};

const removeGroups = async (): Promise<void> => {
  for (const group of await groups()) await rmdir(group).catch(() => undefined);
};

/** Last mounted, first unmounted. */
const mountsBelow = async (folder: string): Promise<readonly string[]> => {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const paths = lines.map((line) => (line.split(' ')[4] ?? '').replaceAll(String.raw`\040`, ' '));
  return paths.filter((path) => path.startsWith(`${folder}/`)).toReversed();
};

interface Loop {
  readonly name: string;
  readonly 'back-file': string | null;
  readonly 'back-ino': number;
  readonly 'back-maj:min': string;
}

const columns = 'NAME,BACK-FILE,BACK-INO,BACK-MAJ:MIN';

/** Of a device number, as losetup prints it. */
const majorMinor = (device: number): string => `${(device >> 8) & 0xfff}:${device & 0xff}`;

/**
 * The kubelet puts a device of its own on each device of ours that a pod has; those come first. Their file is found by its inode: its path is
 * lost when it is unmounted.
 */
const loopsOf = async (folder: string): Promise<readonly string[]> => {
  const { stdout } = await exec('losetup', ['--list', '--json', '--output', columns]);
  if (stdout.trim() === '') return [];
  const { loopdevices } = JSON.parse(stdout) as { readonly loopdevices: readonly Loop[] };
  const ours = loopdevices.filter((loop) => loop['back-file']?.startsWith(`${folder}/`)).map(({ name }) => name);
  const nodes = await Promise.all(ours.map((name) => stat(name)));
  const isOnOurs = (loop: Loop): boolean =>
    nodes.some(({ ino, dev }) => ino === Number(loop['back-ino']) && majorMinor(dev) === loop['back-maj:min'].trim());
  return [...loopdevices.filter(isOnOurs).map(({ name }) => name), ...ours];
};

const inFolder = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch(() => [])).map((name) => join(folder, name));

/** Sockets that nobody listens on, and what CNI noted of our network's links. */
const removeFixed = async (): Promise<void> => {
  const open = new Set((await readFile('/proc/net/unix', 'utf8')).split('\n').map((line) => line.split(' ').at(-1)));
  const sockets = [...(await inFolder('/run/containerd/s')), '/var/lib/kubelet/device-plugins/kubelet.sock'];
  for (const socket of sockets) if (!open.has(socket)) await rm(socket, { force: true });
  for (const file of await inFolder('/var/lib/cni/results')) {
    const [, container] = /\/bullion-([0-9a-f]+)-eth0$/.exec(file) ?? [];
    if (container === undefined) continue;
    await rm(file);
    await rm(join(dirname(file), `cni-loopback-${container}-lo`), { force: true });
  }
  for (const folder of fixedFolders) await rmdir(folder).catch(() => undefined);
};

/** The kubelet makes them outside of its folders. */
const removeLogLinks = async (dataDir: string): Promise<void> => {
  const folder = '/var/log/containers';
  for (const name of await readdir(folder).catch(() => [])) {
    const target = await readlink(join(folder, name)).catch(() => '');
    if (target.startsWith(`${dataDir}/`)) await rm(join(folder, name));
  }
};
