// Starts the containers of a pod as processes of the host. Called by pods.ts.
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Container, Pod } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Environment, expandReferences, resolveEnvironment } from '#local-cluster/controllers/jobs/environment.ts';
import { type HostVolume, type Obstacle, isObstacle } from '#local-cluster/controllers/jobs/mounts.ts';
import { startProcess } from '#local-cluster/controllers/jobs/process.ts';

/** How containers are run on this host. */
export interface Host {
  /** The command of each known container image, when the container has none. */
  readonly images: Readonly<Record<string, readonly string[]>>;
  /** The program for the command `node` of a container. */
  readonly nodePath: string;
  /** Working directory of containers: the content of the image's working directory. */
  readonly workingDir: string;
  /** Default environment of every container (`PATH`). */
  readonly env: Environment;
}

export interface PodPaths {
  readonly dir: string;
  /** State of one container's process. */
  readonly container: (name: string) => string;
  readonly log: (name: string) => string;
  readonly terminationLog: (name: string) => string;
}

export const pathsOf = (dir: string): PodPaths => ({
  dir,
  container: (name) => join(dir, 'containers', name),
  log: (name) => join(dir, 'logs', `${name}.log`),
  terminationLog: (name) => join(dir, 'termination', name),
});

export interface Launch {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly paths: PodPaths;
  readonly volumes: ReadonlyMap<string, HostVolume>;
  /** A hint that one of the processes has ended. */
  readonly onExit: () => void;
}

/** Starts every container that was not started before; returns what prevents it, before anything is started. */
export const launchPod = async (launch: Launch, pod: Pod): Promise<Obstacle | undefined> => {
  const ready: {
    readonly container: Container;
    readonly argv: readonly [string, ...string[]];
    readonly env: Environment;
  }[] = [];
  for (const container of pod.spec.containers) {
    const environment = await resolveEnvironment(launch.kube, pod, container);
    if (isObstacle(environment)) return environment;
    const argv = argvOf(container, launch.host);
    if (isObstacle(argv)) return argv;
    ready.push({ container, argv, env: environment.values });
  }
  for (const name of ['logs', 'termination']) await mkdir(join(launch.paths.dir, name), { recursive: true });
  for (const { container, argv, env } of ready) {
    const map = (text: string): string => mapPaths(expandReferences(text, env), mappingsOf(launch, container));
    const [command, ...args] = argv;
    await startProcess(
      launch.paths.container(container.name),
      {
        argv: [command, ...args.map(map)],
        env: environmentOf(launch, container, env),
        cwd: launch.host.workingDir,
        logFile: launch.paths.log(container.name),
      },
      launch.onExit,
    );
  }
  return undefined;
};

/** Default path of a container's termination message. */
const terminationLogDefault = '/dev/termination-log';

const mappingsOf = ({ paths, volumes }: Launch, container: Container): readonly PathMapping[] => {
  const mounts = container.volumeMounts ?? [];
  const devices = container.volumeDevices ?? [];
  const pathOf = (name: string): string => volumes.get(name)?.path ?? '';
  return [
    mappingOf(container.terminationMessagePath ?? terminationLogDefault, paths.terminationLog(container.name)),
    ...mounts.map(({ name, mountPath }) => mappingOf(mountPath, pathOf(name))),
    ...devices.map(({ name, devicePath }) => mappingOf(devicePath, pathOf(name))),
  ];
};

const environmentOf = (launch: Launch, container: Container, env: Environment): Environment => {
  const mappings = mappingsOf(launch, container);
  const mapped = Object.entries(env).map(([name, value]) => [name, mapPaths(value, mappings)] as const);
  return {
    ...launch.host.env,
    BULLION_TERMINATION_LOG: launch.paths.terminationLog(container.name),
    ...Object.fromEntries(mapped),
  };
};

const argvOf = (
  { image, command = [], args = [] }: Container,
  host: Host,
): readonly [string, ...string[]] | Obstacle => {
  const known = host.images[image];
  if (known === undefined) {
    const names = Object.keys(host.images).join(', ');
    return {
      reason: 'ErrImageNeverPull',
      message: `container image "${image}" is not present: the local cluster runs no containers and knows only ${names}`,
    };
  }
  const [program = '', ...rest] = command.length > 0 ? command : known;
  return [program === 'node' ? host.nodePath : program, ...rest, ...args];
};

/** True once the pod's containers were started. */
export const isLaunched = (paths: PodPaths, pod: Pod): boolean =>
  pod.spec.containers.some(({ name }) => existsSync(join(paths.container(name), 'claim')));

// A local container has no file system of its own: the paths in its configuration are replaced by those on the host.

/** The path on the host for a path in the container. */
interface PathMapping {
  /** Absolute path in the container, without a trailing slash. */
  readonly from: string;
  readonly to: string;
}

export const mappingOf = (from: string, to: string): PathMapping => ({ from: from.replace(/(?<=.)\/+$/, ''), to });

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);

/**
 * Replaces every mapped path in `text`, also as the beginning of a longer path and inside JSON or `key=value` text. A match must not continue
 * another path: neither `/data2` nor `http://host/data` contains `/data`. The longest mapping has precedence, and replacements are not
 * processed again.
 */
export const mapPaths = (text: string, mappings: readonly PathMapping[]): string => {
  if (mappings.length === 0) return text;
  const targets = new Map(mappings.map(({ from, to }) => [from, to]));
  const longestFirst = [...targets.keys()].toSorted((a, b) => b.length - a.length).map(escaped);
  const pattern = new RegExp(String.raw`(?<![\w./-])(?:${longestFirst.join('|')})(?=\/|[^\w.-]|$)`, 'g');
  return text.replaceAll(pattern, (found) => targets.get(found) ?? found);
};
