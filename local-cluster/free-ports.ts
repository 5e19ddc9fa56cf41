// Chooses ports for servers that start listening later. Called by ports.ts and the real API server.
import { randomInt } from 'node:crypto';
import { type ListenOptions, createServer } from 'node:net';
import { pid } from 'node:process';
import { Unavailable } from '#shared/runtime/errors.ts';

/**
 * Below the ranges of outgoing connections (Linux: from 32768) and NodePorts (from 30000), so that no port is taken between its choice and its
 * use.
 */
const range = { from: 20_000, below: 30_000 } as const;
const maxTries = 100;

/** Ports of one process. Another that starts at the same time finds the same ports free until they are used, so it looks elsewhere first. */
const perProcess = 250;
const own = range.from + (pid % ((range.below - range.from) / perProcess)) * perProcess;

/** In turn, so that a port which was chosen and is not used yet is not chosen again. */
let turn = randomInt(perProcess);
const next = (): number => own + (turn = (turn + 1) % perProcess);

/** Different free ports on loopback. Throws Unavailable if hardly any is left. */
export const freePorts = async (count: number): Promise<readonly number[]> => {
  const found = new Set<number>();
  for (let tries = 0; found.size < count; tries += 1) {
    if (tries >= maxTries) throw new Unavailable(`no free port between ${range.from} and ${range.below} on 127.0.0.1`);
    const port = tries < maxTries / 2 ? next() : randomInt(range.from, range.below);
    if (!found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
};

/** On loopback. */
export const isFree = (port: number): Promise<boolean> => canListen({ port, host: '127.0.0.1' });

/** For a program that listens on all addresses. */
export const isFreeEverywhere = (port: number): Promise<boolean> => canListen({ port });

const canListen = (options: ListenOptions): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(options, () => probe.close(() => resolve(true)));
  });
