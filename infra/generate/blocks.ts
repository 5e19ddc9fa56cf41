// The README tables there are, by name. Called by main.ts.
import { readdir } from 'node:fs/promises';
import { z } from 'zod';
import { toAccountTable } from '#infra/generate/accounts.ts';
import { type Blocks, toConfigTable, toFieldTable, toTable } from '#infra/generate/readme.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { fits } from '#infra/workers/fit.ts';
import { admissionFunctions, jobFunctions, metricsFunction, transferFunction } from '#infra/generate/wiring.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type SettingRow, settingRows } from '#shared/runtime/config.ts';

type Settings = Readonly<Record<string, readonly SettingRow[]>>;

/** Blocks: `functions`, `kinds`, `accounts`, `workers`, `config` and `config:<function>`, `config:workers/<name>`, `fields:<plural>.<group>`. */
export const loadBlocks = async (root: URL): Promise<Blocks> => {
  const settings = await loadSettings(root, 'functions', 'config');
  const ofWorkers = await loadSettings(root, 'infra/workers', 'worker');
  const named = Object.entries(ofWorkers).map(([name, rows]) => [`workers/${name}`, rows] as const);
  return {
    functions: toFunctionTable,
    kinds: toKindTable,
    accounts: toAccountTable,
    workers: toWorkerTable,
    config: () => toWholeConfigTable(settings),
    ...Object.fromEntries(
      [...Object.entries(settings), ...named].map(([name, rows]) => [`config:${name}`, () => toConfigTable(rows)]),
    ),
    ...Object.fromEntries(
      servedKinds.map((kind) => [`fields:${kind.type.plural}.${kind.type.group}`, () => toFieldTable(kind)]),
    ),
  };
};

/** The settings schema that every `<folder>/<name>/<file>.ts` exports, as rows. */
const loadSettings = async (root: URL, ...[folder, file]: [string, string]): Promise<Settings> => {
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
const toWorkerTable = (): string => {
  const rows = Object.entries(fits).map(([name, fit]) =>
    'worker' in fit ? [`\`${name}\``, `\`${fit.worker}\``, fit.how] : [`\`${name}\``, 'no', fit.why],
  );
  return toTable(['function', 'as a Worker', 'how, or why not'], rows);
};

/** Every variable once, with the functions that read it. */
const toWholeConfigTable = (settings: Settings): string => {
  const readings = Object.entries(settings).flatMap(([name, rows]) => rows.map((row) => ({ name, row })));
  const byVariable = [...Map.groupBy(readings, ({ row }) => row.env).values()];
  return toConfigTable(
    byVariable.flatMap((alike) => alike.slice(0, 1).map(({ row }) => row)),
    byVariable.map((alike) => alike.map(({ name }) => name).join(', ')),
  );
};

const toFunctionTable = (): string =>
  toTable(
    ['function', 'does', 'woken by', 'runs as'],
    [
      ...eventFunctions.map((fn) => [
        `\`${fn.name}\``,
        fn.summary,
        fn.subscriptions.map(({ summary }) => summary).join('; '),
        'Knative Service, scales to zero',
      ]),
      ...admissionFunctions.map((fn) => [
        `\`${fn.name}\``,
        fn.summary,
        `AdmissionReview: ${fn.webhooks.map(({ summary }) => summary).join('; ')}`,
        'HTTPS Deployment',
      ]),
      [
        `\`${transferFunction.name}\``,
        transferFunction.summary,
        'HTTP; UploadTokenRequest through the API server',
        'Knative Service, scales to zero; HTTPS Deployment for tokens',
      ],
      [
        `\`${metricsFunction.name}\``,
        metricsFunction.summary,
        'Prometheus',
        'Deployment, with the component `monitoring`',
      ],
      ...jobFunctions.map((fn) => [`\`${fn.name}\``, fn.summary, fn.startedBy, 'Job']),
    ],
  );

const toKindTable = (): string =>
  toTable(
    ['kind', 'group', 'short names', 'what it is'],
    servedKinds.map(({ type, shortNames, description }) => [
      `\`${type.kind}\``,
      `\`${type.group}/${type.version}\``,
      shortNames.map((name) => `\`${name}\``).join(', '),
      description,
    ]),
  );
