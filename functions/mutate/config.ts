// Settings of `mutate`.
import { z } from 'zod';
import { cdiSettings, kubeSettings, serverSettings, tlsSettings } from '#shared/runtime/config.ts';

export const Config = z.object({ ...serverSettings, ...tlsSettings, ...kubeSettings, ...cdiSettings });
