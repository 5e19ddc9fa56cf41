// Knative's programs, built from the Go module next to this file, each as an image of the node. Called by install.ts.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Environment, cacheDirOf } from '#local-cluster/envtest/assets.ts';
import { makeFolder } from '#local-cluster/envtest/build.ts';
import { importProgram } from '#local-cluster/node/images.ts';
import { build, moduleFolder } from '#local-cluster/node/programs.ts';

const moduleDir = import.meta.dirname;

/** Packages of Go programs: what Knative's manifests name as `ko://<package>`. Others of its programs do not run on the node. */
const packages = [
  'knative.dev/serving/cmd/activator',
  'knative.dev/serving/cmd/autoscaler',
  'knative.dev/serving/cmd/controller',
  'knative.dev/serving/cmd/queue',
  'knative.dev/serving/cmd/webhook',
  'knative.dev/eventing/cmd/apiserver_receive_adapter',
  'knative.dev/eventing/cmd/broker/filter',
  'knative.dev/eventing/cmd/broker/ingress',
  'knative.dev/eventing/cmd/controller',
  'knative.dev/eventing/cmd/in_memory/channel_controller',
  'knative.dev/eventing/cmd/in_memory/channel_dispatcher',
  'knative.dev/eventing/cmd/mtchannel_broker',
  'knative.dev/eventing/cmd/mtping',
  'knative.dev/eventing/cmd/webhook',
] as const;

const modules = [
  'knative.dev/serving',
  'knative.dev/eventing',
  'knative.dev/networking',
  'knative.dev/caching',
] as const;
type Module = (typeof modules)[number];

export interface KnativePrograms {
  /** Folder with all files of a module of Knative. */
  readonly folders: Readonly<Record<Module, string>>;
  /** Path of each program, by its package. */
  readonly programs: Readonly<Record<string, string>>;
  /** Archive with the time zones of schedules. */
  readonly zones: string;
}

const programName = (source: string): string => source.replace('knative.dev/', '').replaceAll(/\/cmd\/|[/_]/g, '-');

/** Name of the image of a package; for any other package, one that no node has. */
export const imageOf = (source: string): string => `docker.io/bullion/knative-${programName(source)}:node`;

export const isBuilt = (source: string): boolean => (packages as readonly string[]).includes(source);

/** Builds what is missing, one program at a time. Throws Unavailable if a build fails. */
export const ensureKnative = async (env: Environment, report: (line: string) => void): Promise<KnativePrograms> => {
  const digest = createHash('sha256')
    .update(readFileSync(join(moduleDir, 'go.mod')))
    .digest('hex')
    .slice(0, 12);
  const folder = join(dirname(dirname(cacheDirOf(env))), `knative-node-${digest}`);
  await makeFolder(folder);
  const programs: Record<string, string> = {};
  for (const source of packages) {
    const to = join(folder, programName(source));
    await build({ from: moduleDir, source, to, version: '' }, env, report);
    programs[source] = to;
  }
  const folderOf = (module: Module) => [module, moduleFolder(module, moduleDir, env)] as const;
  return {
    folders: Object.fromEntries(modules.map(folderOf)) as Record<Module, string>,
    programs,
    zones: zonesOf(env),
  };
};

/** Of the Go toolchain: what other images have in /usr/share/zoneinfo. */
const zonesOf = (env: Environment): string => {
  const { stdout } = spawnSync('go', ['env', 'GOROOT'], { env, encoding: 'utf8' });
  return join(stdout.trim(), 'lib/time/zoneinfo.zip');
};

export const loadKnative = async (socket: string, { programs, zones }: KnativePrograms): Promise<void> => {
  const more = { files: { 'zoneinfo.zip': zones }, env: ['ZONEINFO=/zoneinfo.zip'] };
  for (const [source, program] of Object.entries(programs)) await importProgram(socket, program, imageOf(source), more);
};
