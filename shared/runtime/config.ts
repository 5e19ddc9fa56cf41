// The only reader of the environment. A function describes its settings in one zod schema; all faults are reported at once.
import { z } from 'zod';
import { type Fault, InvalidInput } from '#shared/runtime/errors.ts';
import { logLevels } from '#shared/runtime/log.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type SettingsShape = Readonly<Record<string, z.ZodType>>;

/** One row of a settings table in a README. */
export interface SettingRow {
  readonly env: string;
  /** As written in the environment. `undefined`: the setting is required; empty: optional without a default. */
  readonly default: string | undefined;
  readonly help: string;
}

/**
 * Binds a field of a settings schema to its environment variable and its one-sentence help. `meta` would clone each schema, which slows down
 * every start; only schemas that several settings share are cloned.
 */
export const setting = <S extends z.ZodType>(env: string, help: string, schema: S): S => {
  if (z.globalRegistry.has(schema)) return schema.meta({ env, help });
  z.globalRegistry.add(schema, { env, help });
  return schema;
};

/** Builders for the value types of environment variables. */
export const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'])
    .default(fallback ? 'true' : 'false')
    .transform((text) => text === 'true' || text === '1');
export const wholeNumber = (minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number<string>().int().min(minimum).max(maximum);

/** JSON text, validated by `schema`. */
export const jsonText = <S extends z.ZodType>(schema: S) =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: 'custom', message: 'is not JSON' });
        return z.NEVER;
      }
    })
    .pipe(schema);

/** Settings of every function that serves HTTP. */
export const serverSettings = {
  port: setting('PORT', 'TCP port to listen on; 0 takes a free one.', wholeNumber(0, 65_535).default(8080)),
  host: setting('HOST', 'Address to listen on; 0.0.0.0 in a pod.', z.string().default('127.0.0.1')),
  logLevel: setting(
    'LOG_LEVEL',
    `Lowest level that is logged: ${logLevels.join(', ')}.`,
    z.enum(logLevels).default('info'),
  ),
} as const;

/** Settings of every function that calls the Kubernetes API. */
export const kubeSettings = {
  kubeconfig: setting(
    'KUBECONFIG',
    'Kubeconfig file. Default: the service account of the pod, or ~/.kube/config.',
    z.string().optional(),
  ),
} as const;

const cdiModes = ['auto', 'serve', 'use'] as const;
export type CdiSetting = (typeof cdiModes)[number];

export const cdiSettings = {
  cdi: setting(
    'CDI',
    'Kinds of cdi.kubevirt.io: `serve` them, or `use` those of an installed CDI without changing them; `auto` checks for its object `CDI`, at most once per minute.',
    z.enum(cdiModes).default('auto'),
  ),
} as const;

const listOfTexts = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** Settings of every function that validates or fetches URLs of users. */
export const addressSettings = {
  allowedAddresses: setting(
    'ALLOWED_ADDRESSES',
    'CIDRs of loopback, link-local or metadata addresses that sources may use nevertheless, separated by commas.',
    z.string().default('').pipe(listOfTexts),
  ),
} as const;

/** Settings of every function that sends events. */
export const sinkSettings = {
  sink: setting('K_SINK', 'URL that events are sent to. Default: none are sent.', z.url().optional()),
  sinkTokenFile: setting(
    'K_SINK_TOKEN_FILE',
    'File with the bearer token for that URL, read for each event; Knative mounts it where it requires one. If the file is missing, no token is sent.',
    z.string().default('/oidc/token'),
  ),
} as const;

/** Settings of every function that takes part in an import and records traces of it. */
export const traceSettings = {
  traceEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'URL of an OTLP/HTTP collector for traces, such as http://collector:4318. Default: no tracing.',
    z.url().optional(),
  ),
} as const;

/** Settings of every function that receives events and authenticates their senders. */
export const callerSettings = {
  oidcAudience: setting(
    'OIDC_AUDIENCE',
    'Audience that the tokens of callers must have. Default: callers are not authenticated.',
    z.string().optional(),
  ),
  oidcSubjects: setting(
    'OIDC_SUBJECTS',
    'Accounts that may call, separated by commas; a trailing * matches any suffix.',
    z
      .string()
      .default('')
      .transform((text) => text.split(',').filter((name) => name !== '')),
  ),
} as const;

/** Settings of every function that serves HTTPS. */
export const tlsSettings = {
  tlsDir: setting(
    'TLS_DIR',
    'Directory with tls.crt and tls.key, as in a mounted Secret; reloaded when they change. Default: plain HTTP.',
    z.string().optional(),
  ),
} as const;

/** The name of the Secret is fixed: those who manage it have rights to that one only. */
export const admissionTlsSettings = {
  tlsFromSecret: setting(
    'TLS_FROM_SECRET',
    'Whether the certificate is read from the Secret of admission, if TLS_DIR is not set.',
    flag(false),
  ),
} as const;

/** Settings of `validate` and `mutate`. */
export const admissionSettings = {
  ...serverSettings,
  ...tlsSettings,
  ...admissionTlsSettings,
  ...kubeSettings,
  ...cdiSettings,
} as const;

export const publicUrlSettings = {
  publicUrl: setting(
    'PUBLIC_URL',
    'Public URL of the transfer function, for links (default: the URL of the request) and, in cron-tick, for clients that read it from CDIConfig.',
    z.url().optional(),
  ),
} as const;

/** Settings for the management of the webhook certificate. */
export const certificateSettings = {
  ownCertificate: setting(
    'OWN_CERTIFICATE',
    'Whether Bullion issues and renews the webhook certificate; false if cert-manager does.',
    flag(true),
  ),
} as const;

/** Settings of the tick. */
export const tickSettings = {
  sweepSeconds: setting(
    'SWEEP_SECONDS',
    'Seconds between two sweeps of an installation at rest: lost events are found by then at the latest. 0: each tick sweeps.',
    z.coerce.number().int().min(0).default(300),
  ),
} as const;

/** The files to serve HTTPS with. */
export const tlsFilesOf = ({ tlsDir }: { readonly tlsDir?: string | undefined }) =>
  tlsDir === undefined ? undefined : { certFile: `${tlsDir}/tls.crt`, keyFile: `${tlsDir}/tls.key` };

/** Parses the settings; throws InvalidInput that names every invalid variable. An empty variable counts as not set. */
export const parseConfig = <S extends SettingsShape>(
  schema: z.ZodObject<S>,
  environment: Environment = process.env,
): z.output<z.ZodObject<S>> => {
  const input: Record<string, string> = {};
  for (const [name, field] of Object.entries(schema.shape)) {
    const value = environment[metaOf(field, 'env')];
    if (value !== undefined && value !== '') input[name] = value;
  }
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const faults = result.error.issues.map((issue) => toFault(schema.shape, issue));
  throw new InvalidInput(
    `configuration: ${faults.map(({ field, message }) => `${field}: ${message}`).join('; ')}`,
    faults,
  );
};

/** Parses the settings for an entry point: prints every fault to standard error and exits with 1. */
export const loadConfig = <S extends SettingsShape>(schema: z.ZodObject<S>): z.output<z.ZodObject<S>> => {
  try {
    return parseConfig(schema);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const lines = error.faults.map(({ field, message }) => `  ${field}: ${message}\n`).join('');
    process.stderr.write(`cannot start, the environment is wrong:\n${lines}`);
    process.exit(1);
  }
};

/** The settings as rows of a table, in order of declaration. */
export const settingRows = (schema: z.ZodObject<SettingsShape>): SettingRow[] =>
  Object.values(schema.shape).map((field) => ({
    env: metaOf(field, 'env'),
    default: defaultOf(field),
    help: metaOf(field, 'help'),
  }));

const metaOf = (field: z.ZodType, key: 'env' | 'help'): string => {
  const text = z.globalRegistry.get(field)?.[key];
  if (typeof text !== 'string') throw new Error(`a setting has no ${key}; wrap its schema in setting()`);
  return text;
};

const toFault = (shape: SettingsShape, issue: z.core.$ZodIssue): Fault => {
  const name = String(issue.path[0] ?? '');
  const field = shape[name];
  if (field === undefined) return { field: name, message: issue.message };
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined && /undefined|NaN/.test(issue.message);
  const message = isMissing ? `is required. ${metaOf(field, 'help')}` : issue.message;
  return { field: metaOf(field, 'env'), message };
};

/** The default as declared, before it is parsed. */
const defaultOf = (field: z.ZodType): string | undefined => {
  if (!field.safeParse(undefined).success) return undefined;
  const { default: fallback } = z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' });
  if (fallback === undefined) return '';
  return typeof fallback === 'string' ? fallback : JSON.stringify(fallback);
};
