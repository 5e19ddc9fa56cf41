// Keeps ports stable over restarts: existing kubeconfigs and running transfers keep working. Called by cluster.ts.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { freePorts, isFree } from '#local-cluster/free-ports.ts';
import { parseJson } from '#shared/runtime/json.ts';

const Ports = z.object({
  api: z.number(),
  broker: z.number(),
  admission: z.number(),
  objectStore: z.number(),
  longhorn: z.number(),
  transfer: z.number(),
  uploadApi: z.number(),
  metrics: z.number(),
  console: z.number(),
});
export type Ports = z.infer<typeof Ports>;

/** The ports of the last start if they are free, otherwise others; `api` as requested. Recorded before it returns. */
export const choosePorts = async (dataDir: string, wanted: Partial<Ports> = {}): Promise<Ports> => {
  const file = join(dataDir, 'ports.json');
  const before = Ports.partial()
    .catch({})
    .parse(await readJson(file));
  const isReserved = new Set<number | undefined>([...Object.values(before), ...Object.values(wanted)]);
  // More than required: some may be reserved for other parts.
  const spare = (await freePorts(16)).filter((port) => !isReserved.has(port));
  const taken = new Set(Object.values(wanted));
  const choose = async (name: keyof Ports): Promise<number> => {
    const asked = wanted[name];
    if (asked !== undefined) return asked;
    const kept = before[name];
    const isKept = kept !== undefined && !taken.has(kept) && (await isFree(kept));
    const port = isKept ? kept : (spare.pop() ?? 0);
    taken.add(port);
    return port;
  };
  const ports: Ports = {
    api: await choose('api'),
    broker: await choose('broker'),
    admission: await choose('admission'),
    objectStore: await choose('objectStore'),
    longhorn: await choose('longhorn'),
    transfer: await choose('transfer'),
    uploadApi: await choose('uploadApi'),
    metrics: await choose('metrics'),
    console: await choose('console'),
  };
  await writeFile(file, JSON.stringify(ports));
  return ports;
};

const readJson = async (file: string): Promise<unknown> =>
  parseJson(await readFile(file, 'utf8').catch(() => undefined)) ?? {};
