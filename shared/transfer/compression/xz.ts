// xz, with any number of streams and blocks, through the xz program.
import { spawn } from 'node:child_process';
import { messageOf } from '#shared/runtime/errors.ts';
import { decoderPrograms } from '#shared/transfer/compression/program.ts';
import { feed } from '#shared/transfer/compression/feed.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { toolEnvironment } from '#shared/transfer/tool/environment.ts';

const maxComplaintChars = 500;

const missing = (error: unknown): TransferError =>
  new TransferError(
    'InternalFault',
    `cannot run xz, which unpacks .xz images (Debian package ${decoderPrograms.xz.package}): ${messageOf(error)}`,
    { cause: error },
  );

const endFault = (complaint: string, status: number | null, killedBy: string | null): TransferError | undefined => {
  if (status === 0) return undefined;
  if (killedBy !== null) return new TransferError('InternalFault', `xz was killed by ${killedBy}`);
  return decoderPrograms.xz.toFault(complaint === '' ? `xz ended with ${status ?? 'nothing'}` : complaint);
};

const startXz = () => {
  const { program, args } = decoderPrograms.xz;
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: toolEnvironment });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, maxComplaintChars);
  });
  const ended = new Promise<TransferError | undefined>((resolve) => {
    child.on('error', (error) => resolve(missing(error)));
    child.on('close', (status, killedBy) => resolve(endFault(complaint, status, killedBy)));
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
