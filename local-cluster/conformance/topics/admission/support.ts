// Common parts of the cases of `admission`.
import type { CaseContext, Webhook, WebhookCall, WebhookReply } from '#local-cluster/conformance/suite/case.ts';
import { at, type JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { type Body, core, create, eventually, grouped } from '#local-cluster/conformance/topics/objects.ts';

export const allowed: WebhookReply = { response: { allowed: true } };
export const denied = (message?: string, more: Body = {}): WebhookReply => ({
  response: { allowed: false, ...(message === undefined ? {} : { status: { message, ...more } }) },
});
export const patched = (operations: readonly Body[]): WebhookReply => ({
  response: {
    allowed: true,
    patchType: 'JSONPatch',
    patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  },
});
export const label = (name: string, value: string): Body => ({ op: 'add', path: `/metadata/labels/${name}`, value });

export const rule = (more: Body = {}): Body => ({
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  resources: ['configmaps'],
  scope: '*',
  ...more,
});

interface HookSpec extends Body {
  readonly path?: string;
}

/** Registers webhooks for the namespaces of this case only, and waits until the server calls them. */
export const register = async (
  t: CaseContext,
  kind: 'Validating' | 'Mutating',
  webhook: Webhook,
  hooks: readonly HookSpec[],
  suffix: string = 'a',
): Promise<string> => {
  const name = `${kind.toLowerCase()}-${suffix}-${t.id}`;
  const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`;
  const webhooks = hooks.map(({ path: hookPath = '/', ...hook }, i) => ({
    name: `hook${i}.${t.id}.example.com`,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    timeoutSeconds: 5,
    clientConfig: webhook.clientConfig(hookPath),
    namespaceSelector: { matchLabels: { case: t.id } },
    rules: [rule()],
    ...hook,
  }));
  await create(t, path, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks,
  });
  t.cleanup(() => t.call('DELETE', `${path}/${name}`));
  return `${path}/${name}`;
};

/** The server observes a configuration a moment after it was created. A probe at the end of every configuration detects when. */
export const inForce = async (
  t: CaseContext,
  webhook: Webhook,
  kinds: readonly ('Validating' | 'Mutating')[],
): Promise<void> => {
  for (const kind of kinds) {
    const probe = {
      path: `/probe-${kind}`,
      rules: [rule({ apiGroups: ['coordination.k8s.io'], resources: ['leases'] })],
    };
    await register(t, kind, webhook, [probe], 'probe');
  }
  const ns = await t.namespace();
  const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'probe' }, spec: {} };
  await eventually(
    'the webhooks are called',
    async () => {
      await t.call('POST', `${grouped('coordination.k8s.io/v1', ns, 'leases')}?dryRun=All`, { body });
      return kinds.filter((kind) => webhook.calls.some(({ path }) => path === `/probe-${kind}`)).length;
    },
    (count) => count === kinds.length,
  );
};

/** The calls of the case, without those for the probe. */
const callsOf = (webhook: Webhook): readonly WebhookCall[] =>
  webhook.calls.filter(({ review }) => at(review, 'request.resource.resource') !== 'leases');

export const pathsOf = (webhook: Webhook): string[] => callsOf(webhook).map(({ path }) => path);

export const reviewsOf = (webhook: Webhook): JsonValue[] => callsOf(webhook).map(({ review }) => review);

/** One active configuration of one kind. */
export const hooked = async (
  t: CaseContext,
  kind: 'Validating' | 'Mutating',
  hooks: readonly HookSpec[],
  reply: (path: string, review: JsonValue) => WebhookReply | Promise<WebhookReply>,
): Promise<{ webhook: Webhook; configmaps: string }> => {
  const webhook = t.webhook(({ path, review }) => (path.startsWith('/probe') ? allowed : reply(path, review)));
  await register(t, kind, webhook, hooks);
  await inForce(t, webhook, [kind]);
  return { webhook, configmaps: core(await t.namespace(), 'configmaps') };
};
