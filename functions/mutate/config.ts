// Settings of `mutate`.
import { z } from 'zod';
import {
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
});
