// Settings of `validate`.
import { z } from 'zod';
import {
  addressSettings,
  admissionTlsSettings,
  cdiSettings,
  kubeSettings,
  serverSettings,
  tlsSettings,
} from '#shared/runtime/config.ts';

export const Config = z.object({
  ...serverSettings,
  ...tlsSettings,
  ...admissionTlsSettings,
  ...kubeSettings,
  ...cdiSettings,
  ...addressSettings,
});
