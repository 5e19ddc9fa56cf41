// The bytes of a backing image, by its source type. Throws with messages like Longhorn's on failure.
import { persistentVolumes, secrets } from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { handleOf } from '#local-cluster/controllers/volumes/facts.ts';
import type { VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';
import { type Key, keyOf } from '#local-cluster/longhorn/cipher.ts';
import type { BackingFiles, FileFacts } from '#local-cluster/longhorn/files.ts';

export interface Tools {
  readonly kube: KubeClient;
  readonly files: BackingFiles;
  readonly directory: VolumeDirectory;
  /** File of a backup, by the name of its backing image. */
  readonly backupOf: (name: string) => string;
}

export interface Preparing {
  readonly uuid: string;
  readonly signal: AbortSignal;
  /** Percent. */
  readonly onProgress: (percent: number) => void;
}

export const prepare = async (tools: Tools, { spec }: BackingImage, preparing: Preparing): Promise<FileFacts> => {
  const { sourceParameters: parameters = {} } = spec;
  switch (spec.sourceType) {
    case 'download':
      return download(tools, parameters['url'] ?? '', preparing);
    case 'export-from-volume':
      return exportVolume(tools, parameters['volume-name'] ?? '', preparing);
    case 'clone':
      return clone(tools, parameters, preparing);
    case 'restore':
      return restore(tools, parameters['backup-url'] ?? '', preparing);
    default:
      throw new Error(`unsupported source type ${spec.sourceType ?? ''}`);
  }
};

const download = async ({ files }: Tools, url: string, { uuid, signal, onProgress }: Preparing): Promise<FileFacts> => {
  const response = await fetch(url, { signal });
  if (!response.ok || response.body === null) {
    throw new Error(`failed to download from ${new URL(url).host}: expected status code 200, got ${response.status}`);
  }
  const total = Number(response.headers.get('content-length') ?? 0);
  const facts = await files.write(uuid, response.body, (count) => total > 0 && onProgress((count * 100) / total));
  if (total > 0 && facts.size !== total) throw new Error(`got ${facts.size} bytes of ${total}`);
  return facts;
};

const exportVolume = async (
  { kube, files, directory }: Tools,
  name: string,
  { uuid }: Preparing,
): Promise<FileFacts> => {
  for await (const volume of kube.listAll(persistentVolumes)) {
    if (handleOf(volume) === name) return files.adopt(uuid, directory.pathOf(name, 'Block'));
  }
  throw new Error(`failed to get volume ${name} before exporting backing image`);
};

/** The key in a Secret that a class refers to. */
export const readKey = async (kube: KubeClient, namespace: string, name: string): Promise<Key> => {
  const secret = await kube.get(secrets, { namespace, name });
  const value = secret?.data?.['CRYPTO_KEY_VALUE'];
  if (value === undefined) throw new Error(`secret ${namespace}/${name} has no CRYPTO_KEY_VALUE`);
  return keyOf(Buffer.from(value, 'base64').toString());
};

const clone = async (
  { kube, files }: Tools,
  parameters: Readonly<Record<string, string>>,
  { uuid }: Preparing,
): Promise<FileFacts> => {
  const name = parameters['backing-image'] ?? '';
  const source = await kube.get(backingImages, { namespace: longhornNamespace, name });
  const from = source?.status?.uuid;
  if (from === undefined) throw new Error(`failed to get source backing image ${name}`);
  const { encryption = 'ignore', secret = '', 'secret-namespace': namespace = '' } = parameters;
  if (encryption === 'ignore') return files.clone(uuid, from);
  const key = await readKey(kube, namespace, secret);
  return files.clone(uuid, from, encryption === 'encrypt' ? { encrypt: key } : { decrypt: key });
};

const restore = async ({ files, backupOf }: Tools, url: string, { uuid }: Preparing): Promise<FileFacts> => {
  const name = new URLSearchParams(url.split('?')[1] ?? '').get('backingImage') ?? '';
  if (!/^[a-z0-9][a-z0-9_.-]+$/.test(name)) throw new Error('the backup URL names no backing image');
  return files.adopt(uuid, backupOf(name));
};
