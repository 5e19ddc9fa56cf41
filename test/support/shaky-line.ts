// An unreliable connection to a server, for any protocol: each connection may be interrupted, or become silent, after some bytes of the answer.
import { type Server, type Socket, connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

/** Of one connection. */
export type Trouble = 'none' | { readonly cutAfter: number } | { readonly silentAfter: number };

export interface ShakyLine {
  readonly port: number;
  /** Failures of connections from now on; called once for each, in order. */
  trouble: (index: number) => Trouble;
  /** Connections so far. */
  count: number;
  close(): Promise<void>;
}

const carry = (near: Socket, far: Socket, trouble: Trouble): void => {
  let passed = 0;
  far.on('data', (chunk: Buffer) => {
    const limit = trouble === 'none' ? Infinity : 'cutAfter' in trouble ? trouble.cutAfter : trouble.silentAfter;
    const rest = chunk.subarray(0, Math.max(0, limit - passed));
    passed += chunk.length;
    if (rest.length > 0 && !near.write(rest)) {
      far.pause();
      near.once('drain', () => far.resume());
    }
    if (passed >= limit && trouble !== 'none' && 'cutAfter' in trouble) near.destroy();
  });
  near.pipe(far);
  far.on('end', () => {
    if (trouble === 'none' || passed < ('cutAfter' in trouble ? trouble.cutAfter : trouble.silentAfter)) near.end();
  });
  near.on('close', () => far.destroy());
  near.on('error', () => far.destroy());
  far.on('error', () => near.destroy());
};

/** To a port of this machine. */
export const startShakyLine = async (to: number): Promise<ShakyLine> => {
  const sockets = new Set<Socket>();
  const server: Server = createServer((near) => {
    const far = connect(to, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    carry(near, far, line.trouble(line.count++));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const line: ShakyLine = {
    port: (server.address() as AddressInfo).port,
    trouble: () => 'none',
    count: 0,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return line;
};
