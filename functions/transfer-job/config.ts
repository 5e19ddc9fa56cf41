// What transfer-job is told, all of it through the environment that a backend writes into the Job.
import { z } from 'zod';
import { ObjectRefData } from '#events/catalogue.ts';
import { jsonText, setting, sinkSettings, traceSettings } from '#shared/runtime/config.ts';

export const TransferJobConfig = z.object({
  transfer: setting('BULLION_TRANSFER', 'What to transfer: a TransferSpec as JSON.', z.string().min(1)),
  owner: setting('BULLION_OWNER', 'The image this is done for: an ObjectRef as JSON.', jsonText(ObjectRefData)),
  run: setting('POD_NAME', 'Name of this run in progress reports; the pod has its own.', z.string().min(1)),
  host: setting(
    'POD_IP',
    'Address that an upload is received on, or a download served; the pod has its own.',
    z.string().default('127.0.0.1'),
  ),
  terminationLog: setting(
    'BULLION_TERMINATION_LOG',
    'File that receives the report.',
    z.string().default('/dev/termination-log'),
  ),
  ...sinkSettings,
  ...traceSettings,
  traceparent: setting('TRACEPARENT', 'W3C trace context that this run is a part of.', z.string().optional()),
});
export type TransferJobConfig = z.infer<typeof TransferJobConfig>;
