// Metrics of limits of tenants: what their namespaces may have and have, from the status that the tick writes.
import { type NamespaceUsage, type TenantLimit, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type Counter, type Metric, gauge } from '#shared/metrics/metric.ts';
import { isOfType } from '#shared/api/object.ts';

const hard = gauge('bullion_tenant_limit', 'What a namespace may have by a TenantLimit: a count, or bytes of storage.');
const used = gauge('bullion_tenant_limit_used', 'What a namespace has of it.');

type Amounts = Pick<NamespaceUsage, 'images' | 'volumes' | 'storage'>;
const resources = ['images', 'volumes', 'storage'] as const;

const valueOf = (value: string | number | undefined): number | undefined =>
  value === undefined ? undefined : parseQuantity(value);

const samples = (
  labels: Metric['labels'],
  limits: Partial<Record<(typeof resources)[number], string | number | undefined>>,
  amounts: Amounts,
): readonly Metric[] =>
  resources.flatMap((resource) => {
    const most = valueOf(limits[resource]);
    if (most === undefined) return [];
    const all = { ...labels, resource };
    return [hard(most, all), used(valueOf(amounts[resource]) ?? 0, all)];
  });

const metricsOf = ({ metadata, spec, status }: TenantLimit): readonly Metric[] => {
  const { quota = {} } = spec;
  return (status?.namespaces ?? []).flatMap((usage) => {
    const labels = { limit: metadata.name, ns: usage.namespace, storageclass: '' };
    const ofClasses = (quota.storageClasses ?? []).flatMap(({ name, ...amounts }) => {
      const there = usage.storageClasses?.find((one) => one.name === name);
      return there === undefined ? [] : samples({ ...labels, storageclass: name }, amounts, there);
    });
    return [...samples(labels, quota, usage), ...ofClasses];
  });
};

export const createLimitCounter = (): Counter => {
  const found: Metric[] = [];
  return {
    visit: (object) => {
      if (isOfType(object, tenantLimitKind.type)) found.push(...metricsOf(object));
    },
    metrics: () => found,
  };
};
