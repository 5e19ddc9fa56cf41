// One JSON line per entry: a constant message, fields and the context of the invocation, all redacted.
import { currentContext } from './trace.ts';
import { redact, redactData } from '#shared/runtime/redact.ts';

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];
type LogFields = Readonly<Record<string, unknown>>;

/** `message` is a constant: variable parts belong into `fields`. An Error among the fields is written with its code and causes. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to every line. */
  with(fields: LogFields): Logger;
}

export interface LoggerOptions {
  /** Lowest level that is written. */
  readonly level?: LogLevel;
  /** Receives one line with its newline. Default: standard output. */
  readonly write?: (line: string) => void;
  readonly now?: () => Date;
  readonly fields?: LogFields;
}

export const createLogger = (options: LoggerOptions = {}): Logger => {
  const { level = 'info', write = (line) => process.stdout.write(line), now = () => new Date(), fields = {} } = options;
  const log =
    (lineLevel: LogLevel) =>
    (message: string, more: LogFields = {}): void => {
      if (logLevels.indexOf(lineLevel) < logLevels.indexOf(level)) return;
      const line = { time: now().toISOString(), level: lineLevel, message: redact(message), ...contextFields() };
      write(`${JSON.stringify({ ...line, ...(redactData({ ...fields, ...more }) as object) })}\n`);
    };
  return {
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    with: (more) => createLogger({ ...options, fields: { ...fields, ...more } }),
  };
};

/** Discards everything: for tests and for library calls outside a function. */
export const silentLogger: Logger = createLogger({ write: () => undefined });

const contextFields = (): LogFields => {
  const { trace, tracer: _, ...rest } = currentContext();
  return trace === undefined ? rest : { ...rest, traceId: trace.traceId };
};
