// A closed loop: so many clients at once, each sending its next request when the last is answered.
import { cpuSeconds } from '#test/bench/processes.ts';
import type { Server } from '#test/bench/api-server/servers.ts';
import type { Answer } from '#test/support/api-server/http.ts';

export interface Load {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds of each request, in no order. */
  readonly latencies: readonly number[];
  /** Seconds of processor time of the server. */
  readonly cpu: number;
}

export interface LoadOptions {
  readonly clients: number;
  /** Ends after this many seconds, or (`requests`) when so many were sent. */
  readonly seconds?: number;
  readonly requests?: number;
}

/** `send` makes request number `index` for client number `client`. */
export const runLoad = async (
  server: Server,
  { clients, seconds = Number.POSITIVE_INFINITY, requests = Number.POSITIVE_INFINITY }: LoadOptions,
  send: (client: number, index: number) => Promise<unknown>,
): Promise<Load> => {
  const latencies: number[] = [];
  const cpuBefore = cpuSeconds(server.pids);
  const began = performance.now();
  let sent = 0;
  const client = async (_: unknown, number: number): Promise<void> => {
    while (sent < requests && performance.now() - began < seconds * 1000) {
      const start = performance.now();
      sent += 1;
      await send(number, sent - 1);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const took = (performance.now() - began) / 1000;
  return { requests: latencies.length, seconds: took, latencies, cpu: cpuSeconds(server.pids) - cpuBefore };
};

/** Loads of one kind of request, measured in turns, as one. */
export const joinLoads = (loads: readonly Load[]): Load => ({
  requests: loads.reduce((sum, load) => sum + load.requests, 0),
  seconds: loads.reduce((sum, load) => sum + load.seconds, 0),
  latencies: loads.flatMap((load) => load.latencies),
  cpu: loads.reduce((sum, load) => sum + load.cpu, 0),
});

export const percentile = (values: readonly number[], percent: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
};

/** Throws when a request was not answered as a benchmark must take for granted. */
export const expectStatus = ({ status, text }: Answer, ...expected: readonly number[]): string => {
  if (expected.includes(status)) return text;
  throw new Error(`a request was answered with ${status}: ${text.slice(0, 500)}`);
};
