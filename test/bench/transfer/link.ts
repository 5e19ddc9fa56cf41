// A link of limited rate for all connections together, as a process of its own: a TCP relay that lets so many bytes a second through to the client.
// `node link.ts <port of the server> <bytes a second>` prints the port it listens on.
import { type Socket, connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

const [serverPort = 0, bytesPerSecond = 0] = process.argv.slice(2).map(Number);
const tickMs = 5;
/**
 * What may pass at once after a pause: 250 ms' worth. Where processors are busy, the relay itself is late by as much, and a real wire would have gone
 * on meanwhile.
 */
const mostCredit = bytesPerSecond / 4;

/** Bytes of one connection that may wait for their turn: less would hold a single one to a chunk for each tick. */
const mostHeld = 1024 * 1024;

interface Connection {
  readonly client: Socket;
  readonly server: Socket;
  held: number;
  /** The client has more than it takes at once. */
  isFull: boolean;
}

const waiting: { readonly bytes: Buffer; readonly connection: Connection }[] = [];
let credit = 0;
let last = process.hrtime.bigint();

const pump = (): void => {
  const now = process.hrtime.bigint();
  credit = Math.min(mostCredit, credit + (Number(now - last) / 1e9) * bytesPerSecond);
  last = now;
  for (let next = waiting[0]; next !== undefined && credit >= 0; next = waiting[0]) {
    waiting.shift();
    credit -= next.bytes.length;
    const { connection } = next;
    const { client, server } = connection;
    connection.held -= next.bytes.length;
    connection.isFull = !client.write(next.bytes);
    if (!connection.isFull && connection.held < mostHeld) server.resume();
  }
};
setInterval(pump, tickMs);

const relay = createServer((client) => {
  const server = connect(serverPort, '127.0.0.1');
  const connection: Connection = { client, server, held: 0, isFull: false };
  client.on('drain', () => {
    connection.isFull = false;
    if (connection.held < mostHeld) server.resume();
  });
  client.on('data', (bytes) => server.write(bytes));
  server.on('data', (bytes) => {
    connection.held += bytes.length;
    if (connection.isFull || connection.held >= mostHeld) server.pause();
    waiting.push({ bytes, connection });
    pump();
  });
  server.on('end', () => {
    const finish = (): void => void (connection.held > 0 ? setTimeout(finish, tickMs) : client.end());
    finish();
  });
  client.on('close', () => server.destroy());
  for (const socket of [client, server]) socket.setNoDelay(true).on('error', () => client.destroy());
});
relay.listen(0, '127.0.0.1', () => console.log((relay.address() as AddressInfo).port));
