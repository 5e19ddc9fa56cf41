// One's trouble stops no other.
import type { BackupDeps } from '#shared/backup/deps.ts';
import { AppError } from '#shared/runtime/errors.ts';

/** What the API or a target says is logged; the next tick tries again. */
export const logFailure = async (
  { log }: Pick<BackupDeps, 'log'>,
  what: string,
  work: () => Promise<unknown>,
): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    log.warn('backup not advanced', { what, error: error.message });
  }
};
