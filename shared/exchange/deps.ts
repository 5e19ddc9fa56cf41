// Dependencies of the transfer function.
import type { UploadDeps } from '#shared/exchange/upload/open.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';

export interface ExchangeDeps extends UploadDeps {
  readonly log: Logger;
  readonly settings: PopulateSettings;
  /** Public URL of this function, without a trailing slash; for links. Default: the URL of the request. */
  readonly publicUrl: string | undefined;
  /** Origins whose pages may use it; `*`: all. A browser never sends tokens by itself. */
  readonly corsOrigins: readonly string[];
  /** URL of Longhorn's HTTP API. */
  readonly longhornUrl: string;
  /** Seconds after the last byte until an upload is answered: with the result, or with the state that all bytes have arrived. */
  readonly answerSeconds: number;
  /** Size limit of an uploaded file in bytes. */
  readonly mostBytes: number;
}
