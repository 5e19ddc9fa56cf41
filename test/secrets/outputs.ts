// Everything that leaves a cluster, as text by its place: the input of the search for credentials.
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { discover } from '#local-cluster/controllers/discovery.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** Place of a text → the text. */
export type Texts = Map<string, string>;

/** What users write in the API of Bullion they may read again: the spec of a served kind, and a Secret. */
export const shown = (object: KubeObject): unknown => {
  // Longhorn fetches itself, from the source in its own objects; only administrators see them.
  if (object.kind === 'Secret' || object.kind.startsWith('BackingImage')) return undefined;
  // The configuration of a backup target.
  if (object.kind === 'ConfigMap' && object.metadata.name === 'backup-target') return undefined;
  const isServed = servedKinds.some(
    ({ type }) => type.kind === object.kind && object.apiVersion.startsWith(`${type.group}/`),
  );
  if (!isServed) return object;
  const { spec: _, ...rest } = object as KubeObject & { readonly spec?: unknown };
  return rest;
};

export const objectsOf = async (kube: KubeClient): Promise<Texts> => {
  const texts: Texts = new Map();
  for (const type of (await discover(kube)).types) {
    // Not every kind can be listed.
    const { items } = await kube.list(type).catch(() => ({ items: [] }));
    for (const item of items) {
      const object = {
        ...item,
        kind: type.kind,
        apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
      };
      const { namespace = '', name } = item.metadata;
      texts.set(`${type.kind} ${namespace}/${name}`, JSON.stringify(shown(object)) ?? '');
    }
  }
  return texts;
};

/** Stores of the API server and of objects, volumes, keys of the cluster itself; and Secrets mounted in running pods, as by a kubelet. */
const kept =
  /^(api|etcd|store|object-store|storage|accounts|pki|longhorn|kubeconfig|lock|ports)|^pods\/[^/]+\/volumes\/(source|transfer)-secret\//;
const mostBytes = 16 * 2 ** 20;

/** Files that are left in the directory of a cluster, including logs. */
export const filesOf = async (dataDir: string): Promise<Texts> => {
  const texts: Texts = new Map();
  for (const path of await readdir(dataDir, { recursive: true })) {
    const file = join(dataDir, path);
    const found = await stat(file).catch(() => undefined);
    if (kept.test(path) || found?.isFile() !== true || found.size > mostBytes) continue;
    texts.set(`file ${path}`, await readFile(file, 'latin1'));
  }
  return texts;
};

/** Arguments and environment of every process that starts until it is stopped; of this process only those of its children. */
export const watchProcesses = () => {
  const texts: Texts = new Map();
  const own = new Set([String(process.pid), String(process.ppid)]);
  let isOn = true;
  const looks = new Map<string, number>();
  /** Often while a process is young and may still execute its program, seldom later: a machine has hundreds of processes. */
  const isDue = (pid: string): boolean => {
    const count = looks.get(pid) ?? 0;
    looks.set(pid, count + 1);
    return count < 10 || count % 50 === 0;
  };
  const look = async (): Promise<void> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && !own.has(name));
    for (const pid of pids.filter((one) => isDue(one))) {
      const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');
      const [line, environment] = [await read('cmdline'), await read('environ')];
      if (/BULLION_|transfer-job|qemu-img/.test(line + environment))
        texts.set(`process ${pid} ${line.slice(0, 80)}`, `${line}\n${environment}`);
    }
  };
  const loop = (async () => {
    while (isOn) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return {
    texts,
    stop: async () => {
      isOn = false;
      await loop;
    },
  };
};
