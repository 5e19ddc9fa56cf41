// The webhooks of the product as called by the API server while they are unavailable: matching requests are rejected or accepted according to
// their failure policy, others are unaffected. Rules, selectors and conditions are those of the generated configurations.
import { objects } from '#infra/generate/declared.ts';
import { buildWebhookConfiguration } from '#infra/generate/webhooks.ts';
import { admissionFunctions } from '#infra/generate/wiring.ts';
import { compileMatchCondition } from '#local-cluster/api-server/schema/cel.ts';
import type { Json } from '#local-cluster/api-server/schema/json.ts';
import { toLabelMatcher } from '#local-cluster/api-server/selectors/label.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { errorOfStatus } from '#shared/clients/kube/wire.ts';
import type { AdmissionRequest } from '#test/support/memory-kube.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly operations: readonly string[];
}

interface Webhook {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly namespaceSelector?: unknown;
  readonly objectSelector?: unknown;
  readonly matchConditions?: readonly { readonly expression: string }[];
  readonly failurePolicy: 'Fail' | 'Ignore';
}

export interface Webhooks {
  /** For the in-memory API: throws the error of the API server. */
  readonly admit: (request: AdmissionRequest) => void;
  /** Requests rejected meanwhile, such as `CREATE virtualmachineimages by kubernetes-admin`. */
  readonly refused: readonly string[];
}

const isAsked = (webhook: Webhook) => {
  const namespaces = toLabelMatcher(webhook.namespaceSelector);
  const labelled = toLabelMatcher(webhook.objectSelector);
  const conditions = (webhook.matchConditions ?? []).map(({ expression }) => {
    const compiled = compileMatchCondition(expression);
    if (compiled.kind === 'invalid') throw new Error(`${webhook.name}: ${expression}: ${compiled.message}`);
    return compiled.matches;
  });
  return ({ operation, type, subresource, user, object, old }: AdmissionRequest): boolean => {
    const isRuled = webhook.rules.some(
      ({ apiGroups, resources, operations }) =>
        apiGroups.includes(type.group) && resources.includes(type.plural) && operations.includes(operation),
    );
    if (!isRuled || subresource !== undefined) return false;
    const known = [object, old].filter((one): one is KubeObject => one !== undefined);
    const namespace = known[0]?.metadata.namespace ?? '';
    if (!namespaces({ 'kubernetes.io/metadata.name': namespace })) return false;
    if (!known.some(({ metadata }) => labelled(metadata.labels))) return false;
    const request = { operation, userInfo: { username: user } };
    const variables = { object: (object ?? null) as Json, oldObject: (old ?? null) as Json, request };
    return conditions.every((matches) => matches(variables));
  };
};

/** `isDown`: whether the webhooks are unavailable now. */
export const createWebhooks = (isDown: () => boolean): Webhooks => {
  const webhooks = admissionFunctions
    .flatMap((fn) => (buildWebhookConfiguration(fn, objects) as unknown as { webhooks: readonly Webhook[] }).webhooks)
    .filter(({ failurePolicy }) => failurePolicy === 'Fail')
    .map((webhook) => ({ name: webhook.name, isAsked: isAsked(webhook) }));
  const refused: string[] = [];
  return {
    refused,
    admit: (request) => {
      const asked = isDown() ? webhooks.find((webhook) => webhook.isAsked(request)) : undefined;
      if (asked === undefined) return;
      refused.push(`${request.operation} ${request.type.plural} by ${request.user}`);
      const why = 'failed to call webhook: Post "https://validate.bullion-system.svc:443": connect: connection refused';
      const message = `Internal error occurred: failed calling webhook "${asked.name}": ${why}`;
      throw errorOfStatus(500, { message }, request.operation);
    },
  };
};
