// `-o json|yaml|wide|name`: the same objects, as a script or a person wants them.
import { stringify } from 'yaml';
import { type OptionSpec, type Values, textOf } from '#cli/command.ts';
import type { KubeObject } from '#shared/api/object.ts';

const formats = ['json', 'yaml', 'wide', 'name'] as const;
export type OutputFormat = (typeof formats)[number] | 'table';

export const outputOption = {
  output: { type: 'string', short: 'o', value: 'FORMAT', help: 'form of what is printed', oneOf: formats },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const outputOf = (values: Values): OutputFormat =>
  formats.find((format) => format === textOf(values, 'output')) ?? 'table';

const serialise = (value: unknown, format: 'json' | 'yaml'): string =>
  format === 'json' ? `${JSON.stringify(value, undefined, 2)}\n` : stringify(value);

/** `undefined`: the caller draws its own table. */
export const printedList = (objects: readonly KubeObject[], format: OutputFormat): string | undefined => {
  if (format === 'name') return objects.map((object) => `${nameOf(object)}\n`).join('');
  if (format !== 'json' && format !== 'yaml') return undefined;
  return serialise({ apiVersion: 'v1', kind: 'List', metadata: {}, items: objects }, format);
};

export const printedObject = (object: KubeObject, format: OutputFormat): string | undefined => {
  if (format === 'name') return `${nameOf(object)}\n`;
  return format === 'json' || format === 'yaml' ? serialise(object, format) : undefined;
};

/** `virtualmachineimage.harvesterhci.io/jammy`, as kubectl names objects. */
export const nameOf = ({ apiVersion, kind, metadata }: KubeObject): string => {
  const [group, version] = apiVersion.split('/');
  return `${kind.toLowerCase()}${version === undefined ? '' : `.${group}`}/${metadata.name}`;
};
