// The transfer function as a process of its own, as a pod has it.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

export interface TransferProcess {
  readonly url: string;
  readonly kill: (signal: 'SIGKILL' | 'SIGTERM') => Promise<void>;
}

const freePort = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** `functions/transfer` as a pod has it. `PORT`: that of one before. */
export const startTransferProcess = async (
  kubeconfig: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<TransferProcess> => {
  const port = environment['PORT'] ?? String(await freePort());
  const child = spawn(process.execPath, ['functions/transfer/index.ts'], {
    env: {
      PATH: process.env['PATH'],
      KUBECONFIG: kubeconfig,
      PORT: port,
      TRANSFER_URL: `http://127.0.0.1:${port}`,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { url } = JSON.parse(line) as { url?: string };
      if (url !== undefined) resolve(url);
    });
    void ended.then(() => reject(new Error('the transfer function ended')));
  });
  return {
    url: await ready,
    kill: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
};
