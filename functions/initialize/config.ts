// Settings of initialize; the README table is generated from them.
import { z } from 'zod';
import { reconcileSettings } from '#shared/resources/settings.ts';

export const Config = z.object(reconcileSettings);
