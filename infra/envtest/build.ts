// Builds the real control plane with the Go toolchain, from the module beside this file. Called by main.ts.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { Environment } from '#infra/envtest/assets.ts';
import { moduleDir, readVersions } from '#infra/envtest/versions.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
} as const;

export interface BuildOptions {
  /** Folder that gets the binaries. */
  readonly outDir: string;
  readonly env: Environment;
  /** Called with a sentence before each step. */
  readonly report: (line: string) => void;
}

export const hasGo = (env: Environment): boolean => spawnSync('go', ['version'], { env }).status === 0;

/** Builds what is missing; a binary appears under its name only when it is whole. Throws Unavailable when the toolchain fails. */
export const buildControlPlane = async ({ outDir, env, report }: BuildOptions): Promise<void> => {
  await mkdir(outDir, { recursive: true });
  for (const [name, source] of Object.entries(packages)) {
    const target = join(outDir, name);
    if (existsSync(target)) continue;
    report(`building ${name} from ${source} (minutes at the first time)`);
    const started = Date.now();
    await goBuild(source, `${target}.part`, env);
    await rename(`${target}.part`, target);
    report(`built ${name} in ${Math.round((Date.now() - started) / 1000)} s`);
  }
  await linkKubectl(outDir, env);
};

const goBuild = async (source: string, output: string, env: Environment): Promise<void> => {
  const args = ['build', '-trimpath', '-buildvcs=false', `-ldflags=${linkerFlags()}`, '-o', output, source];
  const goEnv = { ...env, CGO_ENABLED: '0', GOFLAGS: '-p=2' };
  const child = spawn('go', args, { cwd: moduleDir, env: goEnv, stdio: ['ignore', 'inherit', 'inherit'] });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code !== 0) throw new Unavailable(`go build ${source} failed with exit code ${code}; its output is above`);
};

/** Without symbols; and with the version, which `/version` shows and kubectl compares with its own. */
const linkerFlags = (): string => {
  const { kubernetes } = readVersions();
  const [major = '', minor = ''] = kubernetes.slice(1).split('.');
  const values = { gitVersion: kubernetes, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const settings = Object.entries(values).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-s', '-w', ...settings].join(' ');
};

/** The envtest convention has kubectl beside the servers. */
const linkKubectl = async (outDir: string, env: Environment): Promise<void> => {
  const link = join(outDir, 'kubectl');
  const folders = (env['PATH'] ?? '').split(delimiter);
  const found = folders.map((folder) => join(folder, 'kubectl')).find((file) => existsSync(file));
  if (found !== undefined && !existsSync(link)) await symlink(found, link);
};
