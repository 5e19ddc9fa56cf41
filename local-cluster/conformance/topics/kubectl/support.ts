// Common parts of the cases of `kubectl`.
import { strictEqual } from 'node:assert/strict';
import type { CaseContext, KubectlResult } from '#local-cluster/conformance/suite/case.ts';
import { normaliseColumns } from '#local-cluster/conformance/suite/normalise.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';

export const asShown = ({ code, stdout, stderr }: KubectlResult): KubectlResult => ({
  code,
  stdout: normaliseColumns(stdout),
  // The version skew between kubectl and the server may change.
  stderr: normaliseColumns(stderr.replace(/^WARNING: version difference.*\n/m, '')),
});

/** Runs kubectl in the case's namespace and compares its output. */
export const show = async (
  t: CaseContext,
  label: string,
  args: readonly string[],
  stdin?: string,
): Promise<KubectlResult> => {
  const ns = await t.namespace();
  const result = asShown(await t.kubectl(['-n', ns, ...args], stdin === undefined ? {} : { stdin }));
  t.same(label, result);
  return result;
};

export const run = async (t: CaseContext, args: readonly string[], stdin?: string): Promise<KubectlResult> => {
  const result = await t.kubectl(['-n', await t.namespace(), ...args], stdin === undefined ? {} : { stdin });
  strictEqual(result.code, 0, `kubectl ${args.join(' ')}: ${result.stderr}`);
  return result;
};

export const yamlMap = (data: Readonly<Record<string, string>>, extra = ''): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n${extra}data:\n${Object.entries(data)
    .map(([key, value]) => `  ${key}: ${JSON.stringify(value)}\n`)
    .join('')}`;

const schema = {
  spec: {
    type: 'object',
    description: 'What is wanted.',
    required: ['size'],
    properties: {
      size: { type: 'integer', description: 'How big it is.' },
      colour: { type: 'string', enum: ['red', 'blue'] },
      parts: {
        type: 'array',
        items: { type: 'object', properties: { name: { type: 'string', description: 'Of a part.' } } },
      },
    },
  },
  status: {
    type: 'object',
    properties: {
      conditions: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    },
  },
};

const names = {
  plural: 'widgets',
  singular: 'widget',
  kind: 'Widget',
  listKind: 'WidgetList',
  shortNames: ['wdg'],
  categories: ['gear'],
};
export const columns = [
  { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
  { name: 'Colour', type: 'string', jsonPath: '.spec.colour', priority: 1 },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];

/** Fields with their descriptions in this schema; those that Kubernetes has for metadata are omitted. */
export const isOwn = (line: string): boolean =>
  !/^ {4,}\S/.test(line) || line.includes('\t<') || /What is wanted|How big it is|Of a part/.test(line);

export const kubectlWidgets = (t: CaseContext) =>
  createWidgets(t, {
    properties: schema,
    spec: { names },
    version: { subresources: { status: {} }, additionalPrinterColumns: columns },
  });
