// Limits of a namespace as its users may see them: from the ConfigMap that the tick writes there.
import { z } from 'zod';
import { TenantLimitSpec, TenantLimitStatus } from '#shared/api/bullion/tenant-limit.ts';
import { type ConfigMap, configMaps } from '#shared/api/foreign/core.ts';
import { tenantLimits } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

const NamespaceLimit = TenantLimitSpec.omit({ namespaceSelector: true }).extend({
  name: z.string(),
  used: TenantLimitStatus.shape.namespaces.unwrap().element.omit({ namespace: true }),
});
export type NamespaceLimit = z.infer<typeof NamespaceLimit>;

/** `undefined`: none apply, or they were not counted yet. */
export const readNamespaceLimits = async (
  kube: KubeClient,
  namespace: string,
): Promise<readonly NamespaceLimit[] | undefined> => {
  const found = await kube.get(configMaps, { namespace, name: tenantLimits });
  return found && limitsIn(found);
};

/** Of every namespace that has some. */
export const readAllLimits = async (
  kube: KubeClient,
): Promise<readonly (NamespaceLimit & { readonly namespace: string })[]> => {
  const found = await Array.fromAsync(kube.listAll(configMaps, { fieldSelector: `metadata.name=${tenantLimits}` }));
  return found.flatMap((one) =>
    (limitsIn(one) ?? []).map((limit) => ({ namespace: one.metadata.namespace ?? '', ...limit })),
  );
};

/** `undefined`: somebody wrote into it; the next sweep of cron-tick writes it again. */
const limitsIn = ({ data }: ConfigMap): readonly NamespaceLimit[] | undefined =>
  parseJsonAs(z.array(NamespaceLimit), data?.['limits'] ?? '[]');
