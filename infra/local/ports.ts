// Ports that stay the same over restarts: a kubeconfig in use and a transfer that still runs keep working. Called by cluster.ts.
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';

const Ports = z.object({ api: z.number(), broker: z.number(), admission: z.number(), objectStore: z.number() });
export type Ports = z.infer<typeof Ports>;

/** The ports of the last start where they are free, others where not; `api` as asked for when it is. Written down before it returns. */
export const choosePorts = async (dataDir: string, wanted: Partial<Ports> = {}): Promise<Ports> => {
  const file = join(dataDir, 'ports.json');
  const before = Ports.partial()
    .catch({})
    .parse(await readJson(file));
  const ports: Ports = {
    api: wanted.api ?? (await freePort(before.api)),
    broker: wanted.broker ?? (await freePort(before.broker)),
    admission: wanted.admission ?? (await freePort(before.admission)),
    objectStore: wanted.objectStore ?? (await freePort(before.objectStore)),
  };
  await writeFile(file, JSON.stringify(ports));
  return ports;
};

const readJson = async (file: string): Promise<unknown> => {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch {
    return {};
  }
};

/** The preferred one where it is free. */
export const freePort = async (preferred?: number): Promise<number> => {
  const port = preferred === undefined ? undefined : await tryPort(preferred);
  return port ?? (await tryPort(0)) ?? 0;
};

const tryPort = (port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(undefined));
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address();
      const bound = typeof address === 'object' && address !== null ? address.port : undefined;
      probe.close(() => resolve(bound));
    });
  });
