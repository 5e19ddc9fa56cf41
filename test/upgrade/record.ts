// A record: the objects of a cluster as JSON, and the files of its volumes. Addresses and paths of the cluster that it was taken from are replaced by
// names, and `restore` puts those of another one in their place.
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createStore } from '#local-cluster/api-server/store/store.ts';
import { choosePorts } from '#infra/local/ports.ts';
import type { Secret } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { secretFiles } from '#shared/transfer/sealed.ts';
import { run } from '#test/support/cluster.ts';
import { namespace } from '#test/upgrade/scene.ts';

/** An object, and where a server keeps it. */
interface Kept {
  /** `<plural>` or `<plural>.<group>`. */
  readonly collection: string;
  readonly object: KubeObject;
}

/** Where a cluster is, and the server of its images. */
export interface Place {
  readonly dataDir: string;
  readonly origin: string;
}

/** Folders of a data directory with files of volumes, and the file of each record. */
const folders = ['storage', 'longhorn'];
const archive = 'files.tar.gz';
const objectsFile = 'objects.json';
const fileOfStore = (dataDir: string): string => join(dataDir, 'api-server', 'state.db');

/** What each start makes again, or what only tells of the past. */
const isLeftOut = ({ collection }: Kept): boolean =>
  /^(events|leases|endpoints|endpointslices|serviceaccounts|configmaps|customresourcedefinitions)(\.|$)/.test(
    collection,
  );

/** What a word of a record stands for. */
const wordsOf = async ({ dataDir, origin }: Place): Promise<readonly (readonly [string, string])[]> => {
  const ports = Object.entries(JSON.parse(await readFile(join(dataDir, 'ports.json'), 'utf8')) as object);
  return [
    ['{origin}', new URL(origin).host],
    ['{data}', dataDir],
    ...ports.map(([name, port]) => [`127.0.0.1:{${name}}`, `127.0.0.1:${String(port)}`] as const),
  ];
};

interface Resource {
  readonly name: string;
  readonly verbs: readonly string[];
}

/** Every object that belongs to the namespace, or mentions it. */
const readObjects = async (kube: KubeClient): Promise<readonly Kept[]> => {
  const read = <R>(path: string): Promise<R> => kube.raw<R>({ method: 'GET', path });
  const { groups } = await read<{
    readonly groups: readonly { readonly name: string; readonly preferredVersion: { readonly groupVersion: string } }[];
  }>('/apis');
  const found: Kept[] = [];
  for (const { name, path } of [
    { name: '', path: '/api/v1' },
    ...groups.map((group) => ({ name: group.name, path: `/apis/${group.preferredVersion.groupVersion}` })),
  ]) {
    const { resources } = await read<{ readonly resources: readonly Resource[] }>(path);
    for (const resource of resources.filter(({ verbs }) => verbs.includes('list') && verbs.includes('create'))) {
      const { items, kind, apiVersion } = await read<{
        readonly items: readonly KubeObject[];
        readonly kind: string;
        readonly apiVersion: string;
      }>(`${path}/${resource.name}`);
      const collection = name === '' ? resource.name : `${resource.name}.${name}`;
      found.push(
        ...items.map((object) => ({ collection, object: { ...object, kind: kind.replace(/List$/, ''), apiVersion } })),
      );
    }
  }
  return found.filter((kept) => !isLeftOut(kept) && JSON.stringify(kept.object).includes(namespace));
};

const isSecret = (object: KubeObject): object is Secret => object.kind === 'Secret';
const inTexts = ({ data = {} }: Secret, change: (text: string, name: string) => string): NonNullable<Secret['data']> =>
  Object.fromEntries(Object.entries(data).map(([name, text]) => [name, change(text, name)]));

/** Secrets as text, so that addresses in them are found; without keys, which `restore` makes anew. */
const readable = (object: KubeObject): KubeObject | Secret =>
  isSecret(object)
    ? {
        ...object,
        data: inTexts(object, (text, name) =>
          name === secretFiles.reportKey ? '' : Buffer.from(text, 'base64').toString(),
        ),
      }
    : object;

/** Given anew by the server. */
const withoutVersions = (field: string, value: unknown): unknown =>
  field === 'managedFields' || field === 'resourceVersion' ? undefined : value;

/** The objects now, as the text of a record. */
export const readRecord = async (kube: KubeClient, place: Place): Promise<string> => {
  const objects = (await readObjects(kube)).map(({ collection, object }) => ({ collection, object: readable(object) }));
  const lines = objects.map((kept) => JSON.stringify(kept, withoutVersions)).join(',\n');
  const text = `{"time":"${new Date().toISOString()}","objects":[\n${lines}\n]}\n`;
  return (await wordsOf(place)).reduce((all, [word, value]) => all.replaceAll(value, word), text);
};

/** Of a cluster that has been stopped. */
export const writeRecord = async (folder: string, text: string, { dataDir }: Place): Promise<void> => {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, objectsFile), text);
  const fixed = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--sparse'];
  const pack = ['--use-compress-program=gzip -n9', '-cf', join(folder, archive)];
  await run('tar', [...fixed, ...pack, '-C', dataDir, ...folders]);
};

interface Recorded {
  /** RFC 3339: when it was made. */
  readonly time: string;
  readonly objects: readonly Kept[];
}

/** Everything as long ago as it was when the record was made, so that no deadline passes in a repository. */
const toNow = (text: string): Recorded => {
  const { time } = JSON.parse(text) as Recorded;
  const later = Date.now() - Date.parse(time);
  const moved = text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (at, fraction: string | undefined) => {
    const then = new Date(Date.parse(at) + later).toISOString();
    return fraction === undefined ? then.replace(/\.\d+/, '') : then;
  });
  return JSON.parse(moved) as Recorded;
};

const newKeys = (): { readonly publicKey: string; readonly privateKey: string } => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
};

/** The objects as the API has them: each Job with the public key of the one in its Secret. */
const withKeys = (all: readonly Kept[]): readonly Kept[] => {
  const keys = new Map<string | undefined, string>();
  const toData = (secret: Secret): Secret => ({
    ...secret,
    data: inTexts(secret, (text, name) => {
      if (name !== secretFiles.reportKey) return Buffer.from(text).toString('base64');
      const pair = newKeys();
      keys.set(secret.metadata.ownerReferences?.[0]?.uid, pair.publicKey);
      return Buffer.from(pair.privateKey).toString('base64');
    }),
  });
  const whole = all.map(({ collection, object }) => ({
    collection,
    object: isSecret(object) ? toData(object) : object,
  }));
  return whole.map(({ collection, object }) => {
    const key = keys.get(object.metadata.uid);
    if (key === undefined) return { collection, object };
    const { metadata } = object;
    return {
      collection,
      object: {
        ...object,
        metadata: { ...metadata, annotations: { ...metadata.annotations, [annotations.reportKey]: key } },
      },
    };
  });
};

/** Fills the empty directory of a cluster that has not started yet; returns the objects. */
export const restore = async (folder: string, place: Place): Promise<readonly KubeObject[]> => {
  const { dataDir } = place;
  await mkdir(join(dataDir, 'api-server'), { recursive: true });
  await run('tar', ['-xzf', join(folder, archive), '-C', dataDir]);
  await choosePorts(dataDir);
  const words = await wordsOf(place);
  const text = words.reduce(
    (all, [word, value]) => all.replaceAll(word, value),
    await readFile(join(folder, objectsFile), 'utf8'),
  );
  const store = createStore({ file: fileOfStore(dataDir) });
  const kept = withKeys(toNow(text).objects);
  for (const { collection, object } of kept) {
    const { namespace: of = '', name } = object.metadata;
    store.create({ collection, namespace: of, name }, object as never);
  }
  store.close();
  return kept.map(({ object }) => object);
};
