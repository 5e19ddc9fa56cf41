// Settings of the process that runs every function.
import { hostname } from 'node:os';
import { z } from 'zod';
import { Config as ConsoleConfig } from '#functions/console/config.ts';
import { functionSettings } from '#infra/local/functions.ts';
import { setting, wholeNumber } from '#shared/runtime/config.ts';

const port = wholeNumber(0, 65_535);

/** `PORT` is that of transfer. */
export const SingleConfig = z.object({
  ...functionSettings,
  ...ConsoleConfig.pick({ consoleUrl: true, sessionKey: true, oidcIssuer: true, oidcClientId: true, oidcScopes: true })
    .shape,
  admissionPort: setting('ADMISSION_PORT', 'Port of validate and mutate, over TLS.', port.default(8443)),
  eventsPort: setting('EVENTS_PORT', 'Port for progress reports of transfer Jobs.', port.default(8081)),
  importPort: setting('IMPORT_PORT', 'Port of import-object, for notifications of object stores.', port.default(8082)),
  metricsPort: setting('METRICS_PORT', 'Port of metrics.', port.default(8083)),
  consolePort: setting('CONSOLE_PORT', 'Port of the console. Default: it is not served.', port.optional()),
  uploadApiPort: setting(
    'UPLOAD_API_PORT',
    'Port of the API for upload tokens, over TLS with the certificate in TLS_DIR. Default: it is not served.',
    port.optional(),
  ),
  identity: setting(
    'POD_NAME',
    'Name of this replica, unique among all. Default: the host name and the process.',
    z.string().min(1).default(`${hostname()}-${process.pid}`),
  ),
});
export type SingleConfig = z.output<typeof SingleConfig>;
