// Settings of backup-metadata; the README table is generated from them.
import { z } from 'zod';
import { backupSettings } from '#shared/backup/settings.ts';

export const Config = z.object(backupSettings);
