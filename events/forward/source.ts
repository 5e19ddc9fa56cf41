// Resolves an ApiServerSource manifest to what is forwarded. Called by the local cluster, which reads the manifests of infra/knative.
import { z } from 'zod';
import { type ForwardedResource, type Forwarder, type ForwarderOptions, startForwarder } from './forwarder.ts';
import type { Post } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import { sleep as realSleep, type Sleep } from '#events/sender.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { InvalidInput, messageOf, NotFound } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

const LabelSelector = z.object({
  matchLabels: z.record(z.string(), z.string()).optional(),
  matchExpressions: z
    .array(
      z.object({
        key: z.string(),
        operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
        values: z.array(z.string()).optional(),
      }),
    )
    .optional(),
});

/** The supported part of `sources.knative.dev/v1` ApiServerSource. Unknown fields are rejected, as they would change what is sent. */
const ApiServerSource = z.looseObject({
  kind: z.literal('ApiServerSource'),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().default('default') }),
  spec: z.strictObject({
    resources: z
      .array(z.strictObject({ apiVersion: z.string(), kind: z.string(), selector: LabelSelector.optional() }))
      .min(1),
    mode: z.enum(['Reference', 'Resource']).default('Reference'),
    owner: z.object({ apiVersion: z.string(), kind: z.string() }).optional(),
    namespaceSelector: LabelSelector.optional(),
    serviceAccountName: z.string().optional(),
    ceOverrides: z.object({ extensions: z.record(z.string(), z.string()).optional() }).optional(),
    sink: z.unknown(),
  }),
});
type ApiServerSource = z.infer<typeof ApiServerSource>;

/** Throws InvalidInput that names every error. */
export const parseApiServerSource = (manifest: unknown): ApiServerSource => {
  const result = ApiServerSource.safeParse(manifest);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  throw new InvalidInput(
    `ApiServerSource: ${faults.map((fault) => `${fault.field}: ${fault.message}`).join('; ')}`,
    faults,
  );
};

/**
 * What to forward, with kinds and namespaces resolved once, as Knative does: a namespace created later is not watched unless the selector is
 * `{}`. Throws NotFound while a kind is not served; retry then, as Knative's adapter crashes and restarts.
 */
export const resolveSource = async (
  client: KubeClient,
  { metadata, spec }: ApiServerSource,
): Promise<Pick<ForwarderOptions, 'resources' | 'mode' | 'namespaces' | 'owner' | 'extensions'>> => {
  const resources: ForwardedResource[] = [];
  const known: Served = new Map();
  for (const { apiVersion, kind, selector } of spec.resources) {
    resources.push({
      type: await resolveType(client, known, { apiVersion, kind }),
      labelSelector: toSelectorText(selector),
    });
  }
  return {
    resources,
    mode: spec.mode,
    namespaces: await namespacesOf(client, metadata.namespace, spec.namespaceSelector),
    owner: spec.owner,
    extensions: spec.ceOverrides?.extensions ?? {},
  };
};

type Listed = { readonly name: string; readonly kind: string; readonly namespaced: boolean };
/** What is served in each API version that was requested so far. */
type Served = Map<string, readonly Listed[]>;

/** The kind in the API server's discovery. Throws NotFound when it is not served. */
const resolveType = async (
  client: KubeClient,
  known: Served,
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
): Promise<ResourceType> => {
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const path = group === '' ? `/api/${version}` : `/apis/${apiVersion}`;
  const ask = async () =>
    (await client.raw<{ readonly resources: readonly Listed[] }>({ method: 'GET', path })).resources;
  const resources = known.get(apiVersion) ?? (await ask());
  known.set(apiVersion, resources);
  const found = resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
  if (found === undefined) throw new NotFound(`the API server serves no kind ${kind} in ${apiVersion}`);
  return { group, version, kind, plural: found.name, namespaced: found.namespaced };
};

/** Unset: the namespace of the source; `{}`: all, with one watch; otherwise those that match now. */
const namespacesOf = async (
  client: KubeClient,
  own: string,
  selector: z.infer<typeof LabelSelector> | undefined,
): Promise<readonly string[] | undefined> => {
  if (selector === undefined) return [own];
  const labelSelector = toSelectorText(selector);
  if (labelSelector === undefined) return undefined;
  const type = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };
  const names: string[] = [];
  for await (const { metadata } of client.listAll(type, { labelSelector })) names.push(metadata.name);
  return names;
};

/** The selector as a query parameter; undefined when it selects everything. */
const toSelectorText = (selector: z.infer<typeof LabelSelector> | undefined): string | undefined => {
  const equal = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const terms = (selector?.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`;
  });
  const text = [...equal, ...terms].join(',');
  return text === '' ? undefined : text;
};

// Runs an ApiServerSource from its manifest: waits for its kinds, then forwards their changes.

interface SourceOptions {
  readonly client: KubeClient;
  /** Of kind ApiServerSource. Its `spec.sink` is ignored: events are sent to `sink`. */
  readonly manifest: unknown;
  readonly sink: string;
  readonly post?: Post;
  readonly replay?: 'none' | 'add' | undefined;
  /** Milliseconds between two checks for a kind that is not served yet. Default: one second. */
  readonly lookAgainMs?: number | undefined;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/** Throws InvalidInput when the manifest is invalid. Waits for a kind that is not served, as Knative's adapter restarts until it is. */
export const startSource = (options: SourceOptions): Forwarder => {
  const { client, log, replay = 'none', lookAgainMs = 1_000, sleep = realSleep } = options;
  const source = parseApiServerSource(options.manifest);
  const { name, namespace } = source.metadata;
  const send = createSender({
    sink: options.sink,
    // Knative's source also waits without limit: giving up on a broker that is still delivering would only repeat the event.
    timeoutMs: 'none',
    headers: { 'kn-namespace': namespace },
    sleep,
    ...(options.post === undefined ? {} : { post: options.post }),
  });
  const stop = new AbortController();
  const counts = { sent: 0, lost: 0 };

  const start = async (): Promise<Forwarder | undefined> => {
    let reported: string | undefined;
    while (!stop.signal.aborted) {
      try {
        const resolved = await resolveSource(client, source);
        return startForwarder({ ...resolved, client, log, replay, send, sleep, counts });
      } catch (error) {
        // Once for each reason: a cluster may never have the kind.
        if (messageOf(error) !== reported) log.warn('source is waiting for its kinds', { source: name, error });
        reported = messageOf(error);
        await sleep(lookAgainMs, stop.signal);
      }
    }
    return undefined;
  };
  const started = start();
  return {
    counts,
    ready: started.then((forwarder) => forwarder?.ready),
    stop: async () => {
      stop.abort();
      await (await started)?.stop();
    },
  };
};
