// A label selector of a spec, as Kubernetes has it, and whether labels match it.
import { z } from 'zod';
import { withRules } from '#shared/api/kind.ts';

const Requirement = z
  .object({
    key: z.string().min(1).max(317).describe('name of a label'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('how its value is compared'),
    values: z.array(z.string().max(63)).max(64).optional().describe('for In and NotIn'),
  })
  .meta(
    withRules({
      rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
      message: 'In and NotIn need values, Exists and DoesNotExist have none',
    }),
  );

export const LabelSelector = z.object({
  matchLabels: z.record(z.string(), z.string()).optional().describe('labels and their values, all of them'),
  matchExpressions: z.array(Requirement).max(32).optional().describe('further requirements, all of them'),
});
export type LabelSelector = z.infer<typeof LabelSelector>;

type Labels = Readonly<Record<string, string>>;

/** Labels of a namespace as selectors see them: the API server gives each the one with its name. */
export const labelsOfNamespace = ({
  name,
  labels,
}: {
  readonly name: string;
  readonly labels?: Labels | undefined;
}): Labels => ({
  'kubernetes.io/metadata.name': name,
  ...labels,
});

const meets = (labels: Labels, { key, operator, values = [] }: z.infer<typeof Requirement>): boolean => {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
};

/** An empty selector matches everything. */
export const matchesLabels = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean =>
  Object.entries(matchLabels).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
  matchExpressions.every((requirement) => meets(labels, requirement));
