// Signs of a guest that come over connections: its agent answers, or a port. Each resolves once it has come, and never fails.
import { type Socket, connect, createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { parseJson } from '#shared/runtime/json.ts';

const pauseMs = 1000;

/** Asks again and again: what was asked before the guest was there is lost or answered late. Resolves with the name of its system. */
export const agentAnswers = async (channel: Duplex, signal: AbortSignal): Promise<string | undefined> => {
  let answered = false;
  let name: string | undefined;
  let rest = '';
  channel.on('error', () => {});
  channel.on('data', (piece: Buffer) => {
    const lines = (rest + piece.toString('utf8')).split('\n');
    rest = (lines.pop() ?? '').slice(-16_384);
    for (const line of lines) {
      const answer = returned(line);
      answered ||= answer !== undefined;
      name ??= answer?.['pretty-name'];
    }
  });
  const ask = (execute: string): unknown => channel.write(`${JSON.stringify({ execute })}\n`);
  while (!signal.aborted && !answered) {
    ask('guest-ping');
    await delay(pauseMs, undefined, { signal }).catch(() => {});
  }
  ask('guest-get-osinfo');
  for (let look = 0; look < 20 && name === undefined && !signal.aborted; look += 1) await delay(100);
  return name?.slice(0, 100);
};

const returned = (line: string): { readonly 'pretty-name'?: string } | undefined => {
  const message = parseJson(line.replaceAll('\xff', '')) as { return?: { 'pretty-name'?: string } } | null | undefined;
  return typeof message?.return === 'object' ? message.return : undefined;
};

/** A free port of this machine. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });

/** A connection is accepted before the guest has one: only what comes back over it is of the guest. Many servers speak first, others when spoken to. */
const speaks = (port: number, signal: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1');
    const end = (is: boolean): void => {
      clearTimeout(nudge);
      socket.destroy();
      resolve(is);
    };
    const nudge = setTimeout(() => socket.write('GET / HTTP/1.0\r\n\r\n'), 3000);
    socket.setTimeout(10_000, () => end(false));
    socket.once('data', () => end(true));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
    signal.addEventListener('abort', () => end(false), { once: true });
  });

export const portAnswers = async (port: number, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted && !(await speaks(port, signal))) await delay(pauseMs, undefined, { signal }).catch(() => {});
};
