// Records a dead letter as a Kubernetes Event on the object concerned. Called by the deadLetterSink of a Broker.
import { createHash } from 'node:crypto';
import type { CloudEvent } from '#events/event.ts';
import { type KubeEvent, kubeEvents } from '#shared/api/foreign/core.ts';
import { fieldManager } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { redact, redactUrl } from '#shared/runtime/redact.ts';

export interface DeadLetter {
  /** The receiver that could not be reached, as a URL without query. */
  readonly destination: string;
  /** The last HTTP status; 500 when there was no answer. */
  readonly code: number;
  /** The beginning of the last response body, as text. */
  readonly words: string;
  /** The object the event is about; undefined for a ping. */
  readonly object: KubeEvent['involvedObject'] | undefined;
}

/** Parses the `knativeerror*` extensions and the object of an event of ApiServerSource or of the product. */
const toDeadLetter = ({ extensions, data }: CloudEvent): DeadLetter => {
  const { knativeerrordest: destination = '', knativeerrorcode: code, knativeerrordata: words = '' } = extensions;
  const { apiversion, kind, name, namespace } = extensions;
  const uid = uidOf(data);
  const isNamed = [apiversion, kind, name].every((part) => typeof part === 'string' && part !== '');
  return {
    destination: redactUrl(String(destination)),
    code: Number(code ?? 500),
    words: redact(Buffer.from(String(words), 'base64').toString('utf8')),
    object: isNamed
      ? {
          apiVersion: String(apiversion),
          kind: String(kind),
          name: String(name),
          ...(namespace === undefined || namespace === '' ? {} : { namespace: String(namespace) }),
          ...(uid === undefined ? {} : { uid }),
        }
      : undefined,
  };
};

/** From the object in the event, or from the object that an event of the product refers to. */
const uidOf = (data: unknown): string | undefined => {
  const { metadata, owner, image } = (data ?? {}) as Record<string, { readonly uid?: unknown } | undefined>;
  const uid = metadata?.uid ?? owner?.uid ?? image?.uid;
  return typeof uid === 'string' ? uid : undefined;
};

/** Maximum length of the quoted answer: the API server accepts messages of 1024 bytes. */
const maxWords = 600;

/** The manifest of the Kubernetes Event. Dead letters about one object with one reason share a name, and are counted. */
const buildDeadLetterEvent = (letter: DeadLetter & { readonly object: object }, type: string, now: Date): KubeEvent => {
  const { object, destination, code, words } = letter;
  const { kind = '', name = '', namespace = 'default', uid = '' } = object;
  const hash = createHash('sha256').update([kind, namespace, name, uid, destination, code].join('\n')).digest('hex');
  const time = now.toISOString();
  const shown = Buffer.from(words).subarray(0, maxWords).toString('utf8');
  const answer = shown === '' ? `status ${code}` : `status ${code}: ${shown}`;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, 200)}.${hash.slice(0, 16)}`, namespace },
    involvedObject: object,
    reason: 'EventNotHandled',
    message: `${type} could not be delivered to ${destination} (${answer}). The next tick looks at the object again.`,
    type: 'Warning',
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: fieldManager },
  };
};

/** Records a dead letter on its object; returns its content. Throws AppErrors of the API. */
export const recordDeadLetter = async (client: KubeClient, event: CloudEvent, now: Date): Promise<DeadLetter> => {
  const letter = toDeadLetter(event);
  const { object } = letter;
  if (object === undefined) return letter;
  const manifest = buildDeadLetterEvent({ ...letter, object }, event.type, now);
  try {
    await client.create(kubeEvents, manifest);
  } catch (error) {
    if (!isConflict(error)) throw error;
    await countOneMore(client, manifest);
  }
  return letter;
};

const countOneMore = async (client: KubeClient, manifest: KubeEvent): Promise<void> => {
  const { name, namespace } = manifest.metadata;
  const key = { name, namespace };
  const known = await client.get(kubeEvents, key);
  const { message, lastTimestamp } = manifest;
  await client.mergePatch(kubeEvents, key, { message, lastTimestamp, count: (known?.count ?? 0) + 1 });
};
