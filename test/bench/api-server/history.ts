// What a server keeps when one object changes over and over: the log of old versions must not grow for ever, nor may a watch that does
// not read hold up the server or fill its memory.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expectStatus, runLoad } from '#test/bench/api-server/load.ts';
import { residentMiB } from '#test/bench/processes.ts';
import type { Server } from '#test/bench/api-server/servers.ts';

const collection = '/api/v1/namespaces/default/configmaps';
const objectBytes = 4096;

export interface History {
  readonly changes: number;
  readonly stalled: number;
  /** MiB on disk after one half of the changes, and after all of them. */
  readonly diskHalfway: number;
  readonly diskAfter: number;
  /** MiB resident at the same moments, with watches open that do not read. */
  readonly residentHalfway: number;
  readonly residentAfter: number;
  /** What a watch from the first version is told: 410, or 200 when all history is kept. */
  readonly oldest: number;
}

export interface HistoryOptions {
  readonly changes: number;
  readonly stalled: number;
  readonly clients: number;
}

const diskMiB = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0) /
  1024 ** 2;

const body = (client: number, index: number) => ({
  metadata: { name: `changing-${client}` },
  data: { turn: String(index), text: 'x'.repeat(objectBytes - 400) },
});

export const measureHistory = async (server: Server, options: HistoryOptions): Promise<History> => {
  const { changes, stalled, clients } = options;
  const { http } = server;
  let first = '';
  for (let client = 0; client < clients; client += 1) {
    const text = expectStatus(await http.call('POST', collection, body(client, -1)), 201);
    first = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
  }
  const sockets = await Promise.all(Array.from({ length: stalled }, () => openStalled(server, first)));
  const change = async () => {
    const send = async (client: number, index: number) =>
      expectStatus(await http.call('PUT', `${collection}/changing-${client}`, body(client, index)), 200);
    await runLoad(server, { clients, requests: changes / 2 }, send);
    return { disk: diskMiB(server.dataDir), resident: residentMiB(server.pids) };
  };
  const halfway = await change();
  const after = await change();
  sockets.forEach((socket) => socket.destroy());
  return {
    changes,
    stalled,
    diskHalfway: halfway.disk,
    diskAfter: after.disk,
    residentHalfway: halfway.resident,
    residentAfter: after.resident,
    oldest: await askFrom(server, first),
  };
};

/** A watch whose client reads the head of the answer and nothing more. */
const openStalled = ({ http }: Server, version: string) =>
  new Promise<ReturnType<typeof connect>>((resolve, reject) => {
    const { url, token, caPem } = http.access;
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ca: caPem });
    socket.once('error', reject);
    socket.once('data', () => resolve(socket.pause()));
    socket.write(
      `GET ${collection}?watch=1&resourceVersion=${version} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
  });

const askFrom = async ({ http }: Server, version: string): Promise<number> => {
  const text = expectStatus(
    await http.call('GET', `${collection}?watch=1&resourceVersion=${version}&timeoutSeconds=1`),
    200,
    410,
  );
  const { object } = JSON.parse(text.split('\n')[0] ?? '') as { object: { code?: number } };
  return object.code ?? 200;
};
