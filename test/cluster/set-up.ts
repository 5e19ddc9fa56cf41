// What the flows of one file have: namespaces, a folder of this machine, and web servers that pods reach. All of it is gone after them.
import { afterAll, beforeAll } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { network } from '#local-cluster/node/layout.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { createNamespace, deleteNamespaces } from '#test/cluster/support.ts';

export interface SetUp {
  readonly dir: string;
  /** Serves a file of this machine to pods; returns its URL, which is the same for the same name and speed. */
  readonly offer: (name: string, path: string, bytesPerSecond?: number) => Promise<string>;
}

/** Call it at the top of a test file, with the labels of each namespace. */
export const setUp = (labelsOf: Readonly<Record<string, Readonly<Record<string, string>>>>): SetUp => {
  const dir = temporaryDirectory();
  const servers = new Map<number | undefined, Promise<FileServer>>();
  beforeAll(async () => {
    for (const [name, labels] of Object.entries(labelsOf)) await createNamespace(name, labels);
  });
  afterAll(async () => {
    await deleteNamespaces(...Object.keys(labelsOf));
    for (const server of servers.values()) await (await server).close();
  });
  return {
    dir,
    offer: async (name, path, bytesPerSecond) => {
      const speed = bytesPerSecond === undefined ? {} : { bytesPerSecond };
      const server = servers.get(bytesPerSecond) ?? startFileServer({ host: network.node, ...speed });
      servers.set(bytesPerSecond, server);
      return (await server).offer(name, path);
    },
  };
};
