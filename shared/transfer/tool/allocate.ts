// Gives a file all the room that its size promises, holes and all, so that nothing a guest writes later fails for want of it.
import { TransferError } from '#shared/transfer/fault.ts';
import { runTool } from '#shared/transfer/tool/run-tool.ts';

/** What is there stays as it is. Throws TransferError TargetFull where there is less room than that, TargetFailed where the file system refuses. */
export const allocate = async (path: string, bytes: number, signal: AbortSignal): Promise<void> => {
  const args = ['--posix', '--length', String(bytes), path];
  const { status, complaint, isMissing } = await runTool({ program: 'fallocate', args, signal });
  if (status === 0) return;
  const said = complaint.trim().slice(-300);
  if (isMissing) throw new TransferError('InternalFault', `cannot run fallocate (Debian package util-linux): ${said}`);
  const isFull = /no space left|quota exceeded|file too large/i.test(said);
  throw isFull
    ? new TransferError(
        'TargetFull',
        `no room for all ${bytes} bytes of ${path}, which preallocation asks for: ${said}`,
      )
    : new TransferError('TargetFailed', `cannot preallocate ${path}: ${said}`);
};
