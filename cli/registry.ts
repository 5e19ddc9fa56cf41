// Every command, one line each, in the order help shows them.
import type { Command } from '#cli/command.ts';
import { backupsCommand } from '#cli/commands/backups.ts';
import { completionCommand } from '#cli/commands/completion.ts';
import { downloadCommand } from '#cli/commands/download.ts';
import { exportCommand } from '#cli/commands/export.ts';
import { imagesCommand } from '#cli/commands/images.ts';
import { importCommand } from '#cli/commands/import.ts';
import { retryCommand } from '#cli/commands/retry.ts';
import { uninstallCommand } from '#cli/commands/uninstall.ts';
import { uploadCommand } from '#cli/commands/upload.ts';
import { whyCommand } from '#cli/commands/why.ts';

export const commands: readonly Command[] = [
  importCommand,
  uploadCommand,
  downloadCommand,
  imagesCommand,
  whyCommand,
  exportCommand,
  retryCommand,
  backupsCommand,
  uninstallCommand,
  completionCommand(() => commands),
];
