// The only reader of the environment. A function describes its settings in one zod schema; all faults are reported at once.
import { z } from 'zod';
import { type Fault, InvalidInput } from '#shared/runtime/errors.ts';
import { logLevels } from '#shared/runtime/log.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type SettingsShape = Readonly<Record<string, z.ZodType>>;

/** One row of a README table. */
export interface SettingRow {
  readonly env: string;
  /** As it would be written in the environment; `undefined` when the setting is required, empty when it may be left out. */
  readonly default: string | undefined;
  readonly help: string;
}

/**
 * Ties a field of a settings schema to its environment variable and its one-sentence help. `meta` would make each schema anew, which every start
 * waits for; only what several settings share has to be.
 */
export const setting = <S extends z.ZodType>(env: string, help: string, schema: S): S => {
  if (z.globalRegistry.has(schema)) return schema.meta({ env, help });
  z.globalRegistry.add(schema, { env, help });
  return schema;
};

/** Builders for what the environment can hold. */
export const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'])
    .default(fallback ? 'true' : 'false')
    .transform((text) => text === 'true' || text === '1');
export const wholeNumber = (minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number<string>().int().min(minimum).max(maximum);

/** JSON text that holds what `schema` asks for. */
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

/** What every function that serves HTTP can be told. */
export const serverSettings = {
  port: setting('PORT', 'TCP port to listen on; 0 takes a free one.', wholeNumber(0, 65_535).default(8080)),
  host: setting('HOST', 'Address to listen on; 0.0.0.0 in a pod.', z.string().default('127.0.0.1')),
  logLevel: setting(
    'LOG_LEVEL',
    `Least level that is logged: ${logLevels.join(', ')}.`,
    z.enum(logLevels).default('info'),
  ),
} as const;

/** What every function that talks to the Kubernetes API can be told. */
export const kubeSettings = {
  kubeconfig: setting(
    'KUBECONFIG',
    'Kubeconfig file; without it the service account of the pod or ~/.kube/config.',
    z.string().optional(),
  ),
} as const;

const cdiModes = ['auto', 'serve', 'use'] as const;
export type CdiSetting = (typeof cdiModes)[number];

export const cdiSettings = {
  cdi: setting(
    'CDI',
    'Kinds of cdi.kubevirt.io: `serve` them, or `use` those of a CDI that is installed and leave them alone; `auto` looks for its object `CDI`, each minute at most.',
    z.enum(cdiModes).default('auto'),
  ),
} as const;

const words = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** What every function that judges or follows URLs of users can be told. */
export const addressSettings = {
  allowedAddresses: setting(
    'ALLOWED_ADDRESSES',
    'CIDRs that sources may point to although they are loopback, link-local or metadata addresses, separated by commas.',
    z.string().default('').pipe(words),
  ),
} as const;

/** What every function that sends events can be told. */
export const sinkSettings = {
  sink: setting('K_SINK', 'URL that events are sent to; without it none is sent.', z.url().optional()),
  sinkTokenFile: setting(
    'K_SINK_TOKEN_FILE',
    'File with the token that is shown there, read for each event; Knative mounts one where it asks for it. Without the file none is shown.',
    z.string().default('/oidc/token'),
  ),
} as const;

/** What every function that takes a part in an import can be told about telling of it. */
export const traceSettings = {
  traceEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'URL of an OTLP/HTTP collector that traces are sent to, such as http://collector:4318; without it none are made.',
    z.url().optional(),
  ),
} as const;

/** What every function that takes events can be told about who sends them. */
export const callerSettings = {
  oidcAudience: setting(
    'OIDC_AUDIENCE',
    "Audience that callers' tokens must be made for; without it callers are not asked who they are.",
    z.string().optional(),
  ),
  oidcSubjects: setting(
    'OIDC_SUBJECTS',
    'Accounts that may call, separated by commas; a star at the end of one stands for any end.',
    z
      .string()
      .default('')
      .transform((text) => text.split(',').filter((name) => name !== '')),
  ),
} as const;

/** What every function that serves HTTPS can be told. */
export const tlsSettings = {
  tlsDir: setting(
    'TLS_DIR',
    'Folder with tls.crt and tls.key, as a mounted Secret has them; read again when they change. Plain HTTP without it.',
    z.string().optional(),
  ),
} as const;

export const publicUrlSettings = {
  publicUrl: setting(
    'PUBLIC_URL',
    'Where people reach the transfer function: for links, which else lead where it was called, and, of cron-tick, for clients that look for it in CDIConfig.',
    z.url().optional(),
  ),
} as const;

/** Who looks after the certificate of admission. */
export const certificateSettings = {
  ownCertificate: setting(
    'OWN_CERTIFICATE',
    'Whether the certificate of admission is made and kept fresh here; where cert-manager does so, it is left alone.',
    flag(true),
  ),
} as const;

/** The files to serve HTTPS with. */
export const tlsFilesOf = ({ tlsDir }: { readonly tlsDir?: string | undefined }) =>
  tlsDir === undefined ? undefined : { certFile: `${tlsDir}/tls.crt`, keyFile: `${tlsDir}/tls.key` };

/** Reads the settings; throws InvalidInput naming every variable that is wrong. An empty variable counts as not set. */
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

/** Reads the settings for an entry point: reports every fault on standard error and exits 1. */
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

/** The settings as rows of a table, in the order they were declared. */
export const settingRows = (schema: z.ZodObject<SettingsShape>): SettingRow[] =>
  Object.values(schema.shape).map((field) => ({
    env: metaOf(field, 'env'),
    default: defaultOf(field),
    help: metaOf(field, 'help'),
  }));

const metaOf = (field: z.ZodType, key: 'env' | 'help'): string => {
  const text = z.globalRegistry.get(field)?.[key];
  if (typeof text !== 'string') throw new Error(`a setting names no ${key}; wrap its schema in setting()`);
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

/** The default as it was declared, before anything is made of it. */
const defaultOf = (field: z.ZodType): string | undefined => {
  if (!field.safeParse(undefined).success) return undefined;
  const { default: fallback } = z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' });
  if (fallback === undefined) return '';
  return typeof fallback === 'string' ? fallback : JSON.stringify(fallback);
};
