// What the transfer function works with.
import type { UploadDeps } from '#shared/exchange/upload/open.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';

export interface ExchangeDeps extends UploadDeps {
  readonly log: Logger;
  readonly settings: PopulateSettings;
  /** Where people reach this function, without a slash at the end; for links. Left out: where they did. */
  readonly publicUrl: string | undefined;
  /** Origins whose pages may use it; `*`: all. Tokens are never sent by a browser on its own. */
  readonly corsOrigins: readonly string[];
  /** Of Longhorn's HTTP API. */
  readonly longhornUrl: string;
  /** Seconds after its last byte in which whoever sends a file is answered: with what became of it, or that all of it is here. */
  readonly answerSeconds: number;
  /** Bytes of the largest file that is taken. */
  readonly mostBytes: number;
}
