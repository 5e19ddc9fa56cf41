// Settings of `validate`.
import { z } from 'zod';
import { addressSettings, admissionSettings } from '#shared/runtime/config.ts';

export const Config = z.object({ ...admissionSettings, ...addressSettings });
