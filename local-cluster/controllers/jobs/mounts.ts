// A pod's volumes as directories and files of the host.
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Pod,
  type PodVolume,
  configMaps,
  persistentVolumeClaims,
  persistentVolumes,
  secrets,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isOurDriver } from '#local-cluster/controllers/volumes/classes.ts';
import type { VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';
import {
  capacityOf,
  driverOf,
  handleOf,
  isBound,
  isWaitingForConsumer,
  selectedNode,
  volumeModeOf,
} from '#local-cluster/controllers/volumes/facts.ts';

/** What the pod waits for; `reason` is that of its container's waiting state. */
export interface Obstacle {
  readonly reason: 'ContainerCreating' | 'CreateContainerConfigError' | 'ErrImageNeverPull';
  readonly message: string;
}

/** A volume of the pod on the host. */
export interface HostVolume {
  readonly path: string;
  /** Set for a mounted claim: its maximum size, for the check of its usage. */
  readonly quota?: { readonly claim: string; readonly handle: string; readonly bytes: number };
}

export const isObstacle = (value: object): value is Obstacle => 'reason' in value;

interface Place {
  readonly kube: KubeClient;
  readonly directory: VolumeDirectory;
  /** Name of the only node. */
  readonly nodeName: string;
  /** Directory of this pod's own volumes. */
  readonly podDir: string;
}

/** Host paths by volume name, or the first problem. */
export const resolveVolumes = async (place: Place, pod: Pod): Promise<ReadonlyMap<string, HostVolume> | Obstacle> => {
  const found = new Map<string, HostVolume>();
  for (const volume of pod.spec.volumes ?? []) {
    const resolved = await resolveVolume(place, pod, volume);
    if (isObstacle(resolved)) return resolved;
    found.set(volume.name, resolved);
  }
  return found;
};

const resolveVolume = async (place: Place, pod: Pod, volume: PodVolume): Promise<HostVolume | Obstacle> => {
  const namespace = pod.metadata.namespace ?? 'default';
  const path = join(place.podDir, 'volumes', volume.name);
  if (volume.persistentVolumeClaim !== undefined) {
    return resolveClaim(place, namespace, volume.persistentVolumeClaim.claimName);
  }
  if (volume.nfs !== undefined) return resolveExport(volume.nfs);
  const files = await filesOf(place.kube, namespace, volume);
  if (files !== undefined) return isObstacle(files) ? files : projectFiles(path, files.data, files.encoding);
  await mkdir(path, { recursive: true });
  return { path };
};

/** Folders of this machine serve as its exports. */
const resolveExport = async ({ server, path }: NonNullable<PodVolume['nfs']>): Promise<HostVolume | Obstacle> => {
  const isHere = server === '127.0.0.1' || server === 'localhost';
  const isThere = isHere && (await stat(path).catch(() => undefined))?.isDirectory() === true;
  return isThere
    ? { path }
    : { reason: 'ContainerCreating', message: `mounting ${server}:${path} failed: no such export` };
};

interface Files {
  readonly data: Readonly<Record<string, string>>;
  readonly encoding: 'base64' | 'utf8';
}

/** The content of a secret or a config map; `undefined` for other kinds of volume. */
const filesOf = async (
  kube: KubeClient,
  namespace: string,
  { secret, configMap }: PodVolume,
): Promise<Files | Obstacle | undefined> => {
  if (secret !== undefined) {
    const found = await kube.get(secrets, { namespace, name: secret.secretName });
    if (found === undefined && secret.optional !== true) return missing('secret', secret.secretName);
    return { data: found?.data ?? {}, encoding: 'base64' };
  }
  if (configMap === undefined) return undefined;
  const found = await kube.get(configMaps, { namespace, name: configMap.name });
  if (found === undefined && configMap.optional !== true) return missing('configmap', configMap.name);
  return { data: found?.data ?? {}, encoding: 'utf8' };
};

const missing = (kind: string, name: string): Obstacle => ({
  reason: 'ContainerCreating',
  message: `${kind} "${name}" not found`,
});

/**
 * Updates the directory while a process may be reading it: unchanged files are kept, and a changed file is written next to the old one
 * and renamed, so that a reader gets all of the old or all of the new content.
 */
const projectFiles = async (
  path: string,
  data: Readonly<Record<string, string>>,
  encoding: 'base64' | 'utf8',
): Promise<HostVolume> => {
  const draft = `${path}.part`;
  await mkdir(path, { recursive: true, mode: 0o700 });
  for (const name of await readdir(path)) if (!Object.hasOwn(data, name)) await rm(join(path, name), { force: true });
  for (const [name, value] of Object.entries(data)) {
    const content = Buffer.from(value, encoding);
    const present = await readFile(join(path, name)).catch(() => undefined);
    if (present?.equals(content) === true) continue;
    await writeFile(draft, content, { mode: 0o600 });
    await rename(draft, join(path, name));
  }
  return { path };
};

const resolveClaim = async (
  { kube, directory, nodeName }: Place,
  namespace: string,
  name: string,
): Promise<HostVolume | Obstacle> => {
  const key = { namespace, name };
  const waiting = (message: string): Obstacle => ({ reason: 'ContainerCreating', message });
  const claim = await kube.get(persistentVolumeClaims, key);
  if (claim === undefined) return waiting(`persistentvolumeclaim "${name}" not found`);
  if (claim.metadata.deletionTimestamp !== undefined)
    return waiting(`persistentvolumeclaim "${name}" is being deleted`);
  if (!isBound(claim)) {
    const storageClass = await kube.get(storageClasses, { name: claim.spec.storageClassName ?? 'none' });
    if (storageClass !== undefined && isWaitingForConsumer(claim, storageClass)) {
      await kube.mergePatch(persistentVolumeClaims, key, { metadata: { annotations: { [selectedNode]: nodeName } } });
    }
    return waiting(`pod has unbound immediate PersistentVolumeClaims: "${name}"`);
  }
  const volume = await kube.get(persistentVolumes, { name: claim.spec.volumeName ?? 'none' });
  if (volume === undefined) return waiting(`volume "${claim.spec.volumeName ?? ''}" of claim "${name}" not found`);
  if (!isOurDriver(driverOf(volume))) return waiting(`volume driver "${driverOf(volume)}" is not supported here`);
  const mode = volumeModeOf(volume.spec);
  const path = directory.pathOf(handleOf(volume), mode);
  return mode === 'Block'
    ? { path }
    : { path, quota: { claim: name, handle: handleOf(volume), bytes: capacityOf(volume) } };
};
