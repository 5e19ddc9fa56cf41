// The README tables there are, by name. Called by main.ts.
import { readdir } from 'node:fs/promises';
import { z } from 'zod';
import { toAccountTable } from '#infra/generate/accounts.ts';
import { type Blocks, toConfigTable, toFieldTable, toTable } from '#infra/generate/readme.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { admissionFunctions, jobFunctions, metricsFunction, transferFunction } from '#infra/generate/wiring.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type SettingRow, settingRows } from '#shared/runtime/config.ts';

type Settings = Readonly<Record<string, readonly SettingRow[]>>;

/** Blocks: `functions`, `kinds`, `accounts`, `config` and `config:<function>`, `fields:<plural>.<group>`. */
export const loadBlocks = async (root: URL): Promise<Blocks> => {
  const settings = await loadSettings(root);
  return {
    functions: toFunctionTable,
    kinds: toKindTable,
    accounts: toAccountTable,
    config: () => toWholeConfigTable(settings),
    ...Object.fromEntries(
      Object.entries(settings).map(([name, rows]) => [`config:${name}`, () => toConfigTable(rows)]),
    ),
    ...Object.fromEntries(
      servedKinds.map((kind) => [`fields:${kind.type.plural}.${kind.type.group}`, () => toFieldTable(kind)]),
    ),
  };
};

/** The settings schema every `functions/<name>/config.ts` exports, as rows. */
const loadSettings = async (root: URL): Promise<Settings> => {
  const files = await readdir(new URL('functions/', root), { recursive: true }).catch(() => []);
  const configs = files.filter((file) => /^[\w-]+\/config\.ts$/.test(file)).toSorted();
  const entries = configs.map(async (file): Promise<[string, readonly SettingRow[]]> => {
    const exported: unknown = await import(new URL(`functions/${file}`, root).href);
    const schema = Object.values(exported as object).find((value) => value instanceof z.ZodObject);
    if (schema === undefined) throw new Error(`functions/${file} exports no settings schema`);
    return [file.replace('/config.ts', ''), settingRows(schema as Parameters<typeof settingRows>[0])];
  });
  return Object.fromEntries(await Promise.all(entries));
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
