// The programs of the node: what Debian has, and what is built from Go modules into the cache. Called by main.ts and test/cluster.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, copyFile, readdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Environment, cacheDirOf, readVersions } from '#local-cluster/envtest/assets.ts';
import { buildControlPlane, hasGo, makeFolder } from '#local-cluster/envtest/build.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';

const moduleDir = import.meta.dirname;
/** In the version of the control plane. */
const kubernetesModule = join(moduleDir, 'kubernetes');

type Report = (line: string) => void;

export interface Programs {
  /** Path of a program that was built. */
  readonly of: (name: string) => string;
  /** Folder with `csi.proto` and `registration.proto`. */
  readonly protocols: string;
  /** Folder with the definitions of the kinds of snapshots. */
  readonly definitions: string;
}

/** Where each program of Debian's is, and its package. */
const debian = {
  '/usr/bin/containerd': 'containerd',
  '/usr/bin/ctr': 'containerd',
  '/usr/sbin/runc': 'runc',
  '/usr/lib/cni/ptp': 'containernetworking-plugins',
  '/usr/sbin/nft': 'nftables',
  '/usr/sbin/ip': 'iproute2',
  '/usr/sbin/losetup': 'mount',
  '/usr/sbin/mkfs.ext4': 'e2fsprogs',
} as const;

const ofKubernetes = ['kubelet', 'kube-proxy', 'kube-scheduler'] as const;
const ofModule = {
  'csi-provisioner': 'github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner',
  'csi-resizer': 'github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer',
  'csi-snapshotter': 'github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter',
  'snapshot-controller': 'github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller',
  dns: './dns',
  probe: './probe',
} as const;

/** Throws InvalidInput where a node cannot run, with what is missing and what to do. */
const checkMachine = (env: Environment, report: Report): void => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new InvalidInput('a node runs as root on Linux only: use npm start, which needs neither');
  if (!hasGo(env))
    throw new InvalidInput(
      'the programs of a node are built with Go 1.26 or newer: install it, and have `go` on the PATH',
    );
  const missing = [...new Set(Object.entries(debian).flatMap(([file, name]) => (existsSync(file) ? [] : [name])))];
  if (missing.length === 0) return;
  const args = ['install', '-y', '--no-install-recommends', ...missing];
  report(`apt-get ${args.join(' ')}`);
  const { status } = spawnSync('apt-get', args, {
    env: { ...env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0)
    throw new InvalidInput(`a node needs Debian's ${missing.join(', ')}: install them, after apt-get update`);
};

/** Builds what is missing, one program at a time. Throws InvalidInput where no node can run, Unavailable if a build fails. */
export const ensurePrograms = async (env: Environment, report: Report): Promise<Programs> => {
  checkMachine(env, report);
  const kubernetesDir = cacheDirOf(env);
  await buildControlPlane({ outDir: kubernetesDir, env, report, minutes: 60 });
  const ownDir = join(dirname(dirname(kubernetesDir)), `node-${digestOfModule()}`);
  await makeFolder(ownDir);
  const version = `-X k8s.io/component-base/version.gitVersion=${readVersions().kubernetes}`;
  for (const name of ofKubernetes)
    await build(
      { from: kubernetesModule, source: `k8s.io/kubernetes/cmd/${name}`, to: join(kubernetesDir, name), version },
      env,
      report,
    );
  for (const [name, source] of Object.entries(ofModule))
    await build({ from: moduleDir, source, to: join(ownDir, name), version: '' }, env, report);
  const copied = await copyDefinitions(ownDir, env);
  return { ...copied, of: (name) => join(Object.hasOwn(ofModule, name) ? ownDir : kubernetesDir, name) };
};

/** Other versions or sources are other programs. */
const digestOfModule = (): string => {
  const digest = createHash('sha256');
  for (const file of ['go.mod', 'dns/main.go', 'probe/main.go']) digest.update(readFileSync(join(moduleDir, file)));
  return digest.digest('hex').slice(0, 12);
};

export interface Build {
  /** Folder of the Go module. */
  readonly from: string;
  readonly source: string;
  readonly to: string;
  readonly version: string;
}

/** Unless it is there. Throws Unavailable if the build fails. */
export const build = async ({ from, source, to, version }: Build, env: Environment, report: Report): Promise<void> => {
  if (existsSync(to)) return;
  report(`building ${source} (takes minutes the first time)`);
  const started = Date.now();
  const args = ['build', '-trimpath', '-buildvcs=false', `-ldflags=-s -w ${version}`, '-o', `${to}.part`, source];
  const child = spawn('go', args, {
    cwd: from,
    env: { ...env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('exit', resolve));
  if (code !== 0) throw new Unavailable(`go build ${source} failed with exit code ${code}; its output is above`);
  await rename(`${to}.part`, to);
  report(`built it in ${Math.round((Date.now() - started) / 1000)} s`);
};

/** Folder in Go's module cache with the files of a module that the one in `from` requires. Throws Unavailable if it cannot be had. */
export const moduleFolder = (module: string, from: string, env: Environment): string => {
  const { stdout, status } = spawnSync('go', ['mod', 'download', '-json', module], {
    cwd: from,
    env,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Unavailable(`go mod download ${module} failed: ${stdout}`);
  return (JSON.parse(stdout) as { readonly Dir: string }).Dir;
};

/** Files of Go modules that are no programs. */
const copyDefinitions = async (
  ownDir: string,
  env: Environment,
): Promise<Pick<Programs, 'protocols' | 'definitions'>> => {
  const folderOf = (module: string, from: string): string => moduleFolder(module, from, env);
  const protocols = join(ownDir, 'protocols');
  const definitions = join(ownDir, 'definitions');
  if (existsSync(definitions)) return { protocols, definitions };
  await makeFolder(protocols);
  await makeFolder(`${definitions}.part`);
  const spec = folderOf('github.com/container-storage-interface/spec', moduleDir);
  await copyOwned(join(spec, 'csi.proto'), join(protocols, 'csi.proto'));
  const registration = join(folderOf('k8s.io/kubelet', kubernetesModule), 'pkg/apis/pluginregistration/v1/api.proto');
  await copyOwned(registration, join(protocols, 'registration.proto'));
  const crds = join(folderOf('github.com/kubernetes-csi/external-snapshotter/client/v8', moduleDir), 'config/crd');
  for (const file of (await readdir(crds)).filter((name) => name.includes('storage.k8s.io')))
    await copyOwned(join(crds, file), join(`${definitions}.part`, file));
  await rename(`${definitions}.part`, definitions);
  return { protocols, definitions };
};

/** Files of the module cache may not be written. */
const copyOwned = async (from: string, to: string): Promise<void> => {
  await copyFile(from, to);
  await chmod(to, 0o644);
};
