// Settings of `mutate`.
import { z } from 'zod';
import { admissionSettings } from '#shared/runtime/config.ts';

export const Config = z.object(admissionSettings);
