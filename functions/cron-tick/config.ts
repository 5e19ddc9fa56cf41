// Settings of cron-tick; the README table is generated from them.
import { z } from 'zod';
import { driverSettings } from '#shared/resources/settings.ts';
import { certificateSettings, publicUrlSettings } from '#shared/runtime/config.ts';

export const Config = z.object({ ...driverSettings, ...certificateSettings, ...publicUrlSettings });
