// Builds the real control plane with the Go toolchain, from the module next to this file. Called by main.ts.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, symlink } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import type { Environment } from '#local-cluster/envtest/assets.ts';
import { moduleDir, readVersions } from '#local-cluster/envtest/assets.ts';
import { InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';

const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
} as const;

export interface BuildOptions {
  /** Output folder for the binaries. */
  readonly outDir: string;
  readonly env: Environment;
  /** Called with a sentence before each step. */
  readonly report: (line: string) => void;
  /** Limit for the whole build. */
  readonly minutes: number;
}

export const hasGo = (env: Environment): boolean => spawnSync('go', ['version'], { env }).status === 0;

/**
 * Builds what is missing; a binary appears under its name only when it is complete. Throws Unavailable when the toolchain fails or the time
 * limit is exceeded, InvalidInput for a folder that cannot be created.
 */
export const buildControlPlane = async ({ outDir, env, report, minutes }: BuildOptions): Promise<void> => {
  await makeFolder(outDir);
  const deadline = AbortSignal.timeout(minutes * 60_000);
  for (const [name, source] of Object.entries(packages)) {
    const target = join(outDir, name);
    if (existsSync(target)) continue;
    report(`building ${name} from ${source} (takes minutes the first time)`);
    const started = Date.now();
    await goBuild(source, `${target}.part`, env, deadline);
    await rename(`${target}.part`, target);
    report(`built ${name} in ${Math.round((Date.now() - started) / 1000)} s`);
  }
  await linkKubectl(outDir, env);
};

/** One level at a time: where the kernel rejects a folder with ENOENT, as below /proc, Node's own recursion never ends. */
export const makeFolder = async (folder: string): Promise<void> => {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) await makeFolder(dirname(folder));
  try {
    await mkdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    throw new InvalidInput(
      `${folder} cannot be created: ${messageOf(error)}; set BULLION_ENVTEST_CACHE to a writable folder`,
    );
  }
};

const goBuild = async (source: string, output: string, env: Environment, deadline: AbortSignal): Promise<void> => {
  const args = ['build', '-trimpath', '-buildvcs=false', `-ldflags=${linkerFlags()}`, '-o', output, source];
  const goEnv = { ...env, CGO_ENABLED: '0', GOFLAGS: '-p=2' };
  const child = spawn('go', args, { cwd: moduleDir, env: goEnv, stdio: ['ignore', 'inherit', 'inherit'] });
  // When interrupted, it stops its compilers and keeps their results.
  const interrupt = (): void => void child.kill('SIGINT');
  deadline.addEventListener('abort', interrupt, { once: true });
  if (deadline.aborted) interrupt();
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  deadline.removeEventListener('abort', interrupt);
  if (deadline.aborted) throw new Unavailable(`go build ${source} exceeded the time limit; run it again to continue`);
  if (code !== 0) throw new Unavailable(`go build ${source} failed with exit code ${code}; its output is above`);
};

/** Without symbols; with the version, which `/version` returns and kubectl compares with its own. */
const linkerFlags = (): string => {
  const { kubernetes } = readVersions();
  const [major = '', minor = ''] = kubernetes.slice(1).split('.');
  const values = { gitVersion: kubernetes, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const settings = Object.entries(values).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-s', '-w', ...settings].join(' ');
};

/** By the envtest convention kubectl is next to the servers. */
const linkKubectl = async (outDir: string, env: Environment): Promise<void> => {
  const link = join(outDir, 'kubectl');
  const folders = (env['PATH'] ?? '').split(delimiter);
  const found = folders.map((folder) => join(folder, 'kubectl')).find((file) => existsSync(file));
  if (found !== undefined && !existsSync(link)) await symlink(found, link);
};
