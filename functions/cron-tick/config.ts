// Settings of cron-tick; the README table is generated from them.
import { z } from 'zod';
import { reconcileSettings } from '#shared/resources/settings.ts';
import { certificateSettings, publicUrlSettings, tickSettings } from '#shared/runtime/config.ts';

export const Config = z.object({ ...reconcileSettings, ...certificateSettings, ...publicUrlSettings, ...tickSettings });
