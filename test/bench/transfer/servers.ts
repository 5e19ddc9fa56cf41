// What a row is measured against: nginx, the links in front of it, and a store. Each a process of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Link } from '#test/bench/transfer/rows.ts';
import { startNginx, startPartsNginx } from '#test/bench/transfer/nginx.ts';

/** 1 Gbit/s as bytes, less what Ethernet, IP and TCP take of it. */
const gigabit = 117_500_000;

export interface Servers {
  /** URL of the images over a link. */
  readonly urlOf: (link: Link) => string;
  readonly store: string;
  /** Where the store keeps its object. */
  readonly storeDirectory: string;
  stop(): Promise<void>;
}

const start = async (script: string, args: readonly string[]): Promise<{ child: ChildProcess; url: string }> => {
  const path = new URL(`./${script}`, import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: `http://127.0.0.1:${Number(line.toString())}` };
};

const end = async (child: ChildProcess): Promise<void> => {
  child.kill('SIGTERM');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
};

export const startServers = async (directory: string): Promise<Servers> => {
  const nginx = await startNginx(directory);
  const slow = await startNginx(directory, '50m');
  const link = await start('link.ts', [new URL(nginx.url).port, String(gigabit)]);
  const storeDirectory = join(directory, 'store');
  const control = await start('store.ts', [storeDirectory]);
  const store = await startPartsNginx(directory, control.url);
  const urls: Readonly<Record<Link, string>> = { loopback: nginx.url, gigabit: link.url, '50MBps': slow.url };
  return {
    urlOf: (one) => urls[one],
    store: store.url,
    storeDirectory,
    stop: async () => {
      await Promise.all([end(link.child), store.stop(), end(control.child), nginx.stop(), slow.stop()]);
    },
  };
};
