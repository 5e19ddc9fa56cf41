// Settings of `validate`.
import { z } from 'zod';
import { addressSettings, cdiSettings, kubeSettings, serverSettings, tlsSettings } from '#shared/runtime/config.ts';

export const Config = z.object({
  ...serverSettings,
  ...tlsSettings,
  ...kubeSettings,
  ...cdiSettings,
  ...addressSettings,
});
