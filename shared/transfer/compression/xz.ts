// xz, with any number of streams and blocks, through the xz program.
import { spawn } from 'node:child_process';
import { messageOf } from '#shared/runtime/errors.ts';
import { feed } from '#shared/transfer/compression/feed.ts';
import { TransferError } from '#shared/transfer/fault.ts';

/** The largest preset needs 65 MiB; more means a dictionary nobody publishes images with. */
const memoryLimit = '512MiB';
const maxComplaintChars = 500;

const toFault = (complaint: string, status: number | null, killedBy: string | null): TransferError => {
  const words = complaint.trim().replace(/^.*?\(stdin\): /s, '');
  if (/unexpected end of input/i.test(words)) {
    return new TransferError('ImageTruncated', 'the xz data ends too early: the file is cut off');
  }
  if (/memory/i.test(words))
    return new TransferError('UnsupportedFormat', `the xz data needs more than ${memoryLimit} of memory to unpack`);
  if (killedBy !== null) return new TransferError('InternalFault', `xz was killed by ${killedBy}`);
  return new TransferError(
    'ImageCorrupt',
    `the xz data is broken: ${words === '' ? `xz ended with ${status}` : words}`,
  );
};

const missing = (error: unknown): TransferError =>
  new TransferError(
    'InternalFault',
    `cannot run xz, which unpacks .xz images (Debian package xz-utils): ${messageOf(error)}`,
    { cause: error },
  );

const startXz = () => {
  const child = spawn(
    'xz',
    ['--decompress', '--stdout', '--format=xz', '--quiet', `--memlimit-decompress=${memoryLimit}`],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' },
    },
  );
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, maxComplaintChars);
  });
  const ended = new Promise<TransferError | undefined>((resolve) => {
    child.on('error', (error) => resolve(missing(error)));
    child.on('close', (status, killedBy) => resolve(status === 0 ? undefined : toFault(complaint, status, killedBy)));
  });
  return { child, ended };
};

export async function* unxz(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const { child, ended } = startXz();
  const feeding = feed(input, child.stdin);
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield chunk;
    const fault = await ended;
    const inputFault = await feeding;
    if (inputFault !== undefined) throw inputFault.error;
    if (fault !== undefined) throw fault;
  } finally {
    child.kill('SIGKILL');
    child.stdin.destroy();
    await feeding;
    await ended;
  }
}
