// The servers under measurement, each in processes of its own, so that their memory and processor time are theirs alone.
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { type Http, createHttp } from '#test/support/api-server/http.ts';
import { startServerProcess } from '#test/support/api-server/process.ts';

export type Kind = 'embedded' | 'real';

export interface Server {
  readonly kind: Kind;
  readonly http: Http;
  readonly pids: readonly number[];
  readonly dataDir: string;
  readonly close: () => Promise<void>;
}

export const hasReal = (): boolean => findAssets(process.env) !== undefined;

/** `historyLimit` is the embedded server's. The real one is asked for the promise that the embedded one makes: a write survives the
 * death of the process, but is not on disk yet (etcd without fsync), unless `fsync` is set. */
export const startServer = async (
  kind: Kind,
  { fsync, historyLimit }: { readonly fsync: boolean; readonly historyLimit?: number },
): Promise<Server> => {
  const dataDir = await mkdtemp(join(tmpdir(), `bullion-bench-${kind}-`));
  const remove = () => rm(dataDir, { recursive: true, force: true });
  try {
    const started = kind === 'embedded' ? await startEmbedded(dataDir, historyLimit) : await startReal(dataDir, fsync);
    const close = async (): Promise<void> => {
      await started.http.close();
      await started.stop();
      await remove();
    };
    return { kind, dataDir, http: started.http, pids: started.pids, close };
  } catch (error) {
    await remove();
    throw error;
  }
};

const startEmbedded = async (dataDir: string, historyLimit: number | undefined) => {
  const server = startServerProcess({ dataDir, ...(historyLimit === undefined ? {} : { historyLimit }) });
  return { http: createHttp(await server.ready), pids: [server.pid], stop: server.kill };
};

const startReal = async (dataDir: string, fsync: boolean) => {
  const server = await startRealApiServer({ assetsDir: findAssets(process.env)!, dataDir, durable: fsync });
  /** The first line; the second tells the process from a later one with its number. */
  const pidOf = async (name: string): Promise<number> =>
    Number.parseInt(await readFile(join(dataDir, `${name}.pid`), 'utf8'), 10);
  const pids = [await pidOf('etcd'), await pidOf('kube-apiserver')];
  return { http: createHttp(server), pids, stop: server.close };
};
