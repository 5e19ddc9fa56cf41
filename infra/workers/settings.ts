// Settings of Workers, and how they are read: vars and secrets of wrangler.jsonc instead of an environment.
import { z } from 'zod';
import { parseConfig, setting } from '#shared/runtime/config.ts';
import { type Logger, createLogger, logLevels } from '#shared/runtime/log.ts';

/** Texts and bindings of a Worker. */
export type WorkerEnvironment = Readonly<Record<string, unknown>>;

const isSafe = (text: string): boolean => {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
};

/** A URL that receives a token: TLS, or this machine. */
export const safeUrl = z.url().refine(isSafe, 'must begin with https://: a token is sent to it');

export const workerSettings = {
  logLevel: setting(
    'LOG_LEVEL',
    `Lowest level that is logged: ${logLevels.join(', ')}.`,
    z.enum(logLevels).default('info'),
  ),
} as const;

type WorkerSettings = typeof workerSettings & Readonly<Record<string, z.ZodType>>;

export interface Begun<S extends WorkerSettings> {
  readonly config: z.output<z.ZodObject<S>>;
  readonly log: Logger;
}

/** Start of every call of a Worker. `worker`: its name, in every log line. Throws InvalidInput with every invalid variable. */
export const beginWorker = <S extends WorkerSettings>(
  worker: string,
  schema: z.ZodObject<S>,
  env: WorkerEnvironment,
): Begun<S> => {
  const texts = Object.entries(env).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []));
  const config = parseConfig(schema, Object.fromEntries(texts) as Record<string, string>);
  const { logLevel: level } = config as z.output<z.ZodObject<typeof workerSettings>>;
  // A Worker has no standard output.
  // oxlint-disable-next-line no-console
  const write = (line: string): void => console.log(line.trimEnd());
  return { config, log: createLogger({ level, fields: { worker }, write }) };
};
