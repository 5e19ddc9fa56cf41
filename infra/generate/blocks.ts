// Generated blocks of documents, by name. Called by main.ts.
import { readdir } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { eventFunctions } from './event-functions.ts';
import type { GeneratedManifest } from './manifest.ts';
import { manifestOutputs } from './outputs.ts';
import { type Blocks, toConfigList, toFieldTable, toList, toTable } from './readme.ts';
import { type Right, rightsOf } from './rights.ts';
import { admissionFunctions, consoleFunction, jobFunctions, metricsFunction, transferFunction } from './wiring.ts';
import { SingleConfig } from '#infra/single/config.ts';
import { fits } from '#infra/workers/fit.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { backends, type Registration } from '#shared/backends/registry.ts';
import { sources } from '#shared/populate/source.ts';
import type { Credential } from '#shared/populate/sources/row.ts';
import { type SettingRow, settingRows } from '#shared/runtime/config.ts';
import { toOutcomeList, toTenantList } from '#test/tenants/rows.ts';

// Permissions of each service account, from the generated roles: one row per resource.

/** One letter for verbs with the same effect. */
const letters = [
  ['c', ['create']],
  ['r', ['get', 'list', 'watch']],
  ['u', ['update', 'patch']],
  ['d', ['delete']],
] as const;

/** Accounts that fit beside each other on a line. */
const tables = [
  ['initialize', 'sidecar-sync', 'cron-tick'],
  ['import-object', 'backup-metadata', 'admission', 'transfer', 'sources', 'metrics'],
] as const;

/** `secrets`, `secrets transfer-keys here`: the resource, its object names if restricted, and `here` if restricted to our own namespace. */
const resourceOf = ({ resource, names, namespace }: Right): string =>
  [`\`${resource}\``, ...names.map((name) => `\`${name}\``), ...(namespace === undefined ? [] : ['here'])].join(' ');

const lettersOf = (rights: readonly Right[]): string =>
  letters
    .map(([letter, verbs]) => (rights.some(({ verb }) => (verbs as readonly string[]).includes(verb)) ? letter : ''))
    .join('');

const toAccountTable = (rights: readonly Right[], accounts: readonly string[]): string => {
  const ours = rights.filter(({ account }) => accounts.includes(account));
  const rows = [...Map.groupBy(ours, resourceOf)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return toTable(
    ['resource', ...accounts],
    rows.map(([resource, all]) => [
      resource,
      ...accounts.map((name) => lettersOf(all.filter(({ account }) => account === name))),
    ]),
  );
};

const toAccountTables = (): string => {
  const manifests = Object.values(manifestOutputs()).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest),
  );
  const rights = rightsOf(manifests);
  const missing = [...new Set(rights.map(({ account }) => account))].filter(
    (name) => !tables.flat().includes(name as never),
  );
  if (missing.length > 0) throw new Error(`no table has the accounts ${missing.join(', ')}: add them to accounts.ts`);
  return tables.map((accounts) => toAccountTable(rights, accounts)).join('\n\n');
};

type Settings = Readonly<Record<string, readonly SettingRow[]>>;

/** Blocks: `functions`, `kinds`, `sources`, `accounts`, `tenants`, `workers`, `config` and `config:<function>`, `config:workers/<name>`, `fields:<plural>.<group>`. */
export const loadBlocks = async (root: URL): Promise<Blocks> => {
  const settings = await loadSettings(root, 'functions', 'config');
  const ofWorkers = await loadSettings(root, 'infra/workers', 'worker');
  const named = Object.entries(ofWorkers).map(([name, rows]) => [`workers/${name}`, rows] as const);
  return {
    functions: toFunctionList,
    kinds: toKindList,
    sources: toSourceTable,
    accounts: toAccountTables,
    tenants: toTenants,
    workers: toWorkerList,
    config: () => toWholeConfig({ ...settings, single: ofSingle(settings) }),
    ...Object.fromEntries(
      [...Object.entries(settings), ...named].map(([name, rows]) => [`config:${name}`, () => toConfigList(rows)]),
    ),
    ...Object.fromEntries(
      servedKinds.map((kind) => [`fields:${kind.type.plural}.${kind.type.group}`, () => toFieldTable(kind)]),
    ),
  };
};

/** Those of the process with every function that no function has. */
const ofSingle = (settings: Settings): readonly SettingRow[] => {
  const known = new Set(Object.values(settings).flatMap((rows) => rows.map(({ env }) => env)));
  return settingRows(SingleConfig).filter(({ env }) => !known.has(env));
};

/** The settings schema exported by each `<folder>/<name>/<file>.ts`, as rows. */
const loadSettings = async (root: URL, folder: string, file: string): Promise<Settings> => {
  const files = await readdir(new URL(`${folder}/`, root), { recursive: true }).catch(() => []);
  const names = files.flatMap((path) => (path.endsWith(`/${file}.ts`) ? [path.slice(0, -`/${file}.ts`.length)] : []));
  const entries = names.toSorted().map(async (name): Promise<[string, readonly SettingRow[]]> => {
    const path = `${folder}/${name}/${file}.ts`;
    const exported: unknown = await import(new URL(path, root).href);
    const schema = Object.values(exported as object).find((value) => value instanceof z.ZodObject);
    if (schema === undefined) throw new Error(`${path} exports no settings schema`);
    return [name, settingRows(schema as Parameters<typeof settingRows>[0])];
  });
  return Object.fromEntries(await Promise.all(entries));
};

/** Those that run as Workers first. */
const toWorkerList = (): string =>
  toList(
    Object.entries(fits).map(([name, fit]) =>
      'worker' in fit
        ? `\`${name}\` runs as the Worker \`${fit.worker}\`: ${fit.how}.`
        : `\`${name}\` does not: it ${fit.why}.`,
    ),
  );

/** Every variable once, below the functions that read it. */
const toWholeConfig = (settings: Settings): string => {
  const readings = Object.entries(settings).flatMap(([name, rows]) => rows.map((row) => ({ name, row })));
  const variables = [...Map.groupBy(readings, ({ row }) => row.env).values()];
  const readersOf = (alike: (typeof variables)[number]): string => alike.map(({ name }) => `\`${name}\``).join(', ');
  return [...Map.groupBy(variables, readersOf)]
    .map(([readers, groups]) => {
      const rows = groups.flatMap((alike) => alike.slice(0, 1).map(({ row }) => row));
      return `Read by ${readers}:\n\n${toConfigList(rows)}`;
    })
    .join('\n\n');
};

const toFunctionList = (): string =>
  toList(
    [
      ...eventFunctions.map((fn) => [
        fn.name,
        fn.summary,
        fn.subscriptions.map(({ summary }) => summary).join('; '),
        // Knative looks back for a minute before it takes the last pod away.
        fn.subscriptions.some(({ name }) => name === 'ping')
          ? 'Knative Service, called each minute, so that it keeps a pod'
          : 'Knative Service, scales to zero',
      ]),
      ...admissionFunctions.map((fn) => [
        fn.name,
        fn.summary,
        `AdmissionReview: ${fn.webhooks.map(({ summary }) => summary).join('; ')}`,
        'HTTPS Deployment',
      ]),
      [
        transferFunction.name,
        transferFunction.summary,
        'HTTP; UploadTokenRequest through the API server',
        'Knative Service, scales to zero; HTTPS Deployment for tokens',
      ],
      [
        consoleFunction.name,
        consoleFunction.summary,
        'HTTP',
        'Knative Service, scales to zero, with the component `console`',
      ],
      [metricsFunction.name, metricsFunction.summary, 'Prometheus', 'Deployment, with the component `monitoring`'],
      ...jobFunctions.map((fn) => [fn.name, fn.summary, fn.startedBy, 'Job']),
    ].map(([name, summary, trigger, form]) => `**\`${name}\`** (${form}). ${summary} Triggered by: ${trigger}.`),
  );

const toKindList = (): string =>
  toList(
    servedKinds.map(({ type, shortNames, description }) => {
      const short = shortNames.length === 0 ? '' : `, short: ${shortNames.map((name) => `\`${name}\``).join(', ')}`;
      return `**\`${type.kind}\`** (\`${type.group}/${type.version}\`${short}). ${description}`;
    }),
  );

/** Possible actions of a tenant, as tested. */
const toTenants = (): string => `${toList(toOutcomeList())}

${toList(toTenantList())}`;

const credentialNames: Readonly<Record<Credential, string>> = {
  secretRef: 'Secret',
  certConfigMap: 'ConfigMap',
  workloadIdentity: 'identity',
};

/** Every type of source, its kind of transfer, and the backends that support it. */
const toSourceTable = (): string =>
  toTable(
    ['type', 'what it is', 'how it arrives', 'credentials', 'backends'],
    Object.entries(sources).map(([type, { name, arrives, takes }]) => [
      `\`${type}\``,
      name,
      arrives,
      takes.map((one) => credentialNames[one]).join(', '),
      takersOf(type),
    ]),
  );

const takersOf = (type: string): string =>
  Object.entries<Registration>(backends)
    .flatMap(([name, registration]) =>
      registration.served && registration.backend.capabilities.sources.some((taken) => taken === type)
        ? [`\`${name}\``]
        : [],
    )
    .join(', ');
