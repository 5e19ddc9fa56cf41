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
  /** The command of each container image known here, where the container names none. */
  readonly images: Readonly<Record<string, readonly string[]>>;
  /** What `node` as a container's command stands for. */
  readonly nodePath: string;
  /** Working directory of containers: what the image's working directory holds. */
  readonly workingDir: string;
  /** Environment every container has beneath its own (`PATH`). */
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
  /** A hint that one of the processes ended. */
  readonly onExit: () => void;
}

/** Starts every container that was not started before; returns what is in the way, before anything is started. */
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

/** Path of a container's termination message where it names none. */
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

/** True once the pod's containers were asked to run. */
export const isLaunched = (paths: PodPaths, pod: Pod): boolean =>
  pod.spec.containers.some(({ name }) => existsSync(join(paths.container(name), 'claim')));

// A local container has no file system of its own: the paths it is told are replaced by those on the host.

/** What a path inside the container is on the host. */
interface PathMapping {
  /** Absolute path in the container, without a slash at the end. */
  readonly from: string;
  readonly to: string;
}

export const mappingOf = (from: string, to: string): PathMapping => ({ from: from.replace(/(?<=.)\/+$/, ''), to });

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);

/**
 * Replaces every mapped path in `text`, also as the beginning of a longer path and inside JSON or `key=value` text. Something is a path only
 * where it does not continue another one: neither `/data2` nor `http://host/data` contains `/data`. The longest mapping wins, and what was
 * put in is not looked at again.
 */
export const mapPaths = (text: string, mappings: readonly PathMapping[]): string => {
  if (mappings.length === 0) return text;
  const targets = new Map(mappings.map(({ from, to }) => [from, to]));
  const longestFirst = [...targets.keys()].toSorted((a, b) => b.length - a.length).map(escaped);
  const pattern = new RegExp(String.raw`(?<![\w./-])(?:${longestFirst.join('|')})(?=\/|[^\w.-]|$)`, 'g');
  return text.replaceAll(pattern, (found) => targets.get(found) ?? found);
};
