// Settings of metrics; the README table is generated from them.
import { z } from 'zod';
import { kubeSettings, serverSettings } from '#shared/runtime/config.ts';

export const Config = z.object({ ...serverSettings, ...kubeSettings });
