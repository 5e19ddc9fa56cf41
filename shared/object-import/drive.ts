// Reconciles one object: reads it and everything made from it, decides, acts. Called for each notification, when one of its images ends, and by
// the tick.
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type KubeEvent, kubeEvents } from '#shared/api/foreign/core.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { keyOf, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  type Description,
  describeObject,
  shortHash,
  type Sidecars,
  type StoredFacts,
} from '#shared/object-import/description.ts';
import type { ObjectHint } from '#shared/object-import/notification.ts';
import {
  type ImportAction,
  type ObjectId,
  type Observed,
  objectLabels,
  planImport,
} from '#shared/object-import/plan.ts';
import { type ImportRule, matchRule, sidecarSuffixes } from '#shared/object-import/rules.ts';
import { isNamespaceLeaving } from '#shared/clients/kube/wire.ts';
import { InvalidInput, isConflict, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { type Outcome, done, failed } from '#shared/runtime/outcome.ts';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { readWhole } from '#shared/runtime/read-bytes.ts';

export interface ObjectImportDeps {
  readonly kube: KubeClient;
  readonly rules: readonly ImportRule[];
  readonly openStore: OpenStore;
  /** Whether to list buckets for objects without a notification; the call counts as a listing. Default: at each tick. */
  readonly isListingDue?: () => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Logger;
}

const images = hyperCloudImageKind.type;
const dataSources = dataSourceKind.type;

/** `done` for objects without a rule. Throws errors of the API or the store; the sender retries. */
export const importObject = async (deps: ObjectImportDeps, hint: ObjectHint): Promise<Outcome> => {
  const match = matchRule(deps.rules, hint.bucket, hint.key);
  if (match === undefined) return done;
  const { rule, key } = match;
  const id: ObjectId = { bucket: hint.bucket, key, hash: shortHash([hint.bucket, key]) };
  try {
    const description = await describe(deps, rule, id);
    const observed = await observe(deps.kube, { rule, id, description });
    for (const action of planImport(observed)) await act(deps, action);
    return done;
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const message = `object ${key} of bucket ${hint.bucket} is not imported: ${error.message}`;
    deps.log.warn('object refused', { bucket: hint.bucket, key, error: error.message });
    await recordEvent(deps, placeOf(rule), { reason: 'ObjectRefused', message });
    return failed('ObjectRefused', message);
  }
};

const describe = async (deps: ObjectImportDeps, rule: ImportRule, id: ObjectId): Promise<Description | undefined> => {
  const { s3, close } = await deps.openStore(rule);
  try {
    const facts = await readFacts(s3, id);
    return facts && describeObject(rule, id.key, facts, await readSidecars(s3, id));
  } finally {
    await close();
  }
};

const observe = async (kube: KubeClient, about: Pick<Observed, 'rule' | 'id' | 'description'>): Promise<Observed> => {
  const { rule, id, description } = about;
  const scope = { namespace: rule.namespace, labelSelector: `${objectLabels.object}=${id.hash}` };
  const versions: HyperCloudImage[] = [];
  for await (const image of kube.listAll(images, scope)) versions.push(image);
  const [labelled] = (await kube.list(dataSources, scope)).items;
  const named =
    labelled ?? (description && (await kube.get(dataSources, { namespace: rule.namespace, name: description.name })));
  return { ...about, versions, dataSource: named };
};

const act = async (deps: ObjectImportDeps, action: ImportAction): Promise<void> => {
  const { kube } = deps;
  switch (action.do) {
    case 'create-image':
      return ifNew(() => kube.create(images, action.image));
    case 'create-data-source':
      return ifNew(() => kube.create(dataSources, action.dataSource));
    case 'point':
      return point(kube, action.dataSource, action.claim);
    case 'mark-image':
      await kube.mergePatch(images, keyOf(action.image), { metadata: action.marks });
      return;
    case 'mark-data-source':
      await kube.mergePatch(dataSources, keyOf(action.dataSource), { metadata: action.marks });
      return;
    case 'delete-image':
      return kube.delete(images, keyOf(action.image), { uid: action.image.metadata.uid ?? '' });
    case 'delete-data-source':
      return kube.delete(dataSources, keyOf(action.dataSource), { uid: action.dataSource.metadata.uid ?? '' });
    case 'complain':
      return complain(deps, action.about, action.message);
  }
};

/** Created concurrently: the next pass finds it. */
const ifNew = async (create: () => Promise<unknown>): Promise<void> => {
  try {
    await create();
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
};

const point = async (kube: KubeClient, dataSource: DataSource, claim: string): Promise<void> => {
  const { resourceVersion, namespace = '' } = dataSource.metadata;
  const patch = { metadata: { resourceVersion }, spec: { source: { pvc: { name: claim, namespace } } } };
  await kube.mergePatch(dataSources, keyOf(dataSource), patch);
};

const complain = async (deps: ObjectImportDeps, about: DataSource, message: string): Promise<void> => {
  deps.log.warn('object refused', { dataSource: about.metadata.name, error: message });
  const { namespace = '' } = about.metadata;
  await recordEvent(deps, { ...refOf(about), namespace }, { reason: 'NameTaken', message });
};

/** A rejected object has no image: it is reported in its namespace. */
const placeOf = ({ namespace }: ImportRule) => ({ apiVersion: 'v1', kind: 'Namespace', namespace, name: namespace });

const recordEvent = async (
  deps: ObjectImportDeps,
  about: KubeEvent['involvedObject'] & { readonly namespace: string },
  { reason, message }: { readonly reason: string; readonly message: string },
): Promise<void> => {
  const time = new Date(deps.now()).toISOString();
  const event: KubeEvent = {
    apiVersion: 'v1',
    kind: 'Event',
    // One per message: a repeated one is a conflict.
    metadata: { name: `${about.name}.${shortHash([about.uid, message])}`, namespace: about.namespace },
    involvedObject: about,
    type: 'Warning',
    reason,
    message,
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: 'bullion' },
  };
  try {
    await ifNew(() => deps.kube.create(kubeEvents, event));
  } catch (error) {
    if (!isNamespaceLeaving(error)) deps.log.warn('event not recorded', { reason, error: messageOf(error) });
  }
};

// The state of an object in the store: its metadata and its sidecars.

/** Size limit: a digest with file names, or a small document. */
const maxSidecarBytes = 64 * 1024;

interface Place {
  readonly bucket: string;
  readonly key: string;
}

/** Opens the store with the credentials in the namespace of a rule. */
type OpenStore = (
  rule: ImportRule,
) => Promise<{ readonly s3: Pick<S3Client, 'head' | 'get' | 'list'>; readonly close: () => Promise<void> }>;

const ifThere = async <T>(read: () => Promise<T>): Promise<T | undefined> => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof S3Failure && error.code === 'ObjectNotFound') return undefined;
    throw error;
  }
};

/** `undefined`: there is no such object. Throws S3Failure for other errors of the store. */
const readFacts = (s3: Pick<S3Client, 'head'>, place: Place): Promise<StoredFacts | undefined> =>
  ifThere(() => s3.head(place));

/** Throws InvalidInput if one exceeds the size limit. */
export const readSidecars = async (s3: Pick<S3Client, 'get'>, { bucket, key }: Place): Promise<Sidecars> => {
  const entries = sidecarSuffixes.map(async (suffix) => {
    const text = await ifThere(() => readText(s3, { bucket, key: key + suffix }));
    return [suffix, text] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
};

const readText = async (s3: Pick<S3Client, 'get'>, place: Place): Promise<string> => {
  const content = await s3.get(place);
  if (content.size > maxSidecarBytes) {
    content.discard();
    throw new InvalidInput(
      `${place.key} has ${content.size} bytes: a file beside an image has ${maxSidecarBytes} at most`,
    );
  }
  return (await readWhole(content.body)).toString('utf8');
};
