// Requests to one path over connections that are kept, and how long each took.
import { Agent, request } from 'node:http';

export interface Load {
  readonly port: number;
  readonly path: string;
  readonly body: string;
  /** Requests in flight at a time, each on a connection of its own. */
  readonly clients: number;
  readonly requests: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

const post = ({ port, path, body }: Load): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent }, (response) => {
      response.resume();
      const isAnswer = response.statusCode === 200;
      response.once('end', () => (isAnswer ? resolve() : reject(new Error(`${path} answered ${response.statusCode}`))));
    });
    sent.once('error', reject);
    sent.end(body);
  });

export interface Measured {
  readonly perSecond: number;
  /** Milliseconds, ascending. */
  readonly times: readonly number[];
}

export const measureLoad = async (load: Load): Promise<Measured> => {
  const times: number[] = [];
  let left = load.requests;
  const started = performance.now();
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const at = performance.now();
      await post(load);
      times.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: load.clients }, client));
  const seconds = (performance.now() - started) / 1000;
  return { perSecond: load.requests / seconds, times: times.toSorted((a, b) => a - b) };
};

export const closeConnections = (): void => agent.destroy();

export const quantile = (ascending: readonly number[], share: number): number =>
  ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
