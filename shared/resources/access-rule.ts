// Whether the author of an object may use what it is made from: asked and written down by `mutate`, asked again and enforced by `validate`,
// and told before anything else. Why this cannot be forged: shared/access/README.md.
import { isDeepStrictEqual } from 'node:util';
import { type Grant, type UsedSource, anyName, toGrantText } from '#shared/access/grant.ts';
import { type Requester, grantFor } from '#shared/access/sources.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { annotations, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AdmissionAnswer, refused } from '#shared/runtime/admission-function.ts';
import { type Fault, Unavailable } from '#shared/runtime/errors.ts';

/** A source, and how to speak of it. */
export interface AskedSource extends UsedSource {
  readonly field: string;
  /** How to speak of what is reached by a reference of the user's: where it leads to may be none of their business. */
  readonly shown?: string;
  /** What a reference may lead to later on: granted where it is allowed, and not missed where it is not. */
  readonly optional?: boolean;
}

/** What an object is made from that lies outside of what its author owns. One or two looks at the cluster at most. */
export type SourcesOf<T extends KubeObject> = (
  object: T,
  kube: KubeClient,
) => readonly AskedSource[] | Promise<readonly AskedSource[]>;

const field = `metadata.annotations[${annotations.granted}]`;
const grantTextOf = (object: KubeObject | undefined): string | undefined =>
  object?.metadata.annotations?.[annotations.granted];

/** Who is asked about: as a rule the author of the request. */
interface Asker {
  readonly userInfo: Requester;
}

/** Our functions ask for the users they act for, and write down what they found. */
const isOwnAccount = ({ userInfo }: Asker): boolean => userInfo.username.startsWith(ownAccountPrefix);

const withGrants = (object: KubeObject, text: string | undefined): KubeObject => {
  if (grantTextOf(object) === text) return object;
  const { [annotations.granted]: _, ...rest } = object.metadata.annotations ?? {};
  const all = text === undefined ? rest : { ...rest, [annotations.granted]: text };
  return { ...object, metadata: { ...object.metadata, annotations: all } };
};

interface Asked {
  readonly grants: readonly Grant[];
  readonly denied: readonly AskedSource[];
}

const askAll = async ({ userInfo }: Asker, sources: readonly AskedSource[], kube: KubeClient): Promise<Asked> => {
  const asked = await Promise.all(
    sources.map(async (source) => ({ source, grant: await grantFor(kube, userInfo, source) })),
  );
  return {
    grants: asked.flatMap(({ grant }) => grant ?? []),
    denied: asked.flatMap(({ source, grant }) => (grant === undefined && source.optional !== true ? [source] : [])),
  };
};

/** The object with its grants: those of its author at creation, and the ones it had from then on. */
export const fillGrants = async (
  request: AdmissionRequest,
  object: KubeObject,
  sourcesOf: SourcesOf<KubeObject>,
  kube: KubeClient,
): Promise<KubeObject> => {
  if (isOwnAccount(request)) return object;
  if (request.operation === 'UPDATE') return withGrants(object, grantTextOf(request.oldObject));
  const { grants } = await askAll(request, await sourcesOf(object, kube), kube);
  return withGrants(object, toGrantText(grants));
};

const shownOf = ({ namespace, name, shown = name === anyName ? namespace : `${namespace}/${name}` }: AskedSource) =>
  shown;

const toFault =
  ({ userInfo }: Asker) =>
  (source: AskedSource): Fault => ({
    field: source.field,
    message: `user ${userInfo.username} is not allowed to ${wordsOf[source.use]} ${shownOf(source)}: ${adviceOf[source.use]}`,
  });

const wordsOf = {
  'clone-claim': 'clone from',
  'clone-snapshot': 'clone from',
  'export-claim': 'export the claim',
  'use-image': 'use the image',
  'read-secret': 'use the Secret',
} as const;

const cloneAdvice = 'it takes the right to create datavolumes/source of cdi.kubevirt.io there';
const adviceOf = {
  'clone-claim': cloneAdvice,
  'clone-snapshot': cloneAdvice,
  'export-claim': 'it takes the right to get it',
  'use-image': 'it takes the right to get it',
  'read-secret': 'it takes the right to get it, or write one of the namespace of the image',
} as const;

const restoreTextOf = (object: KubeObject | undefined): string | undefined =>
  object?.metadata.annotations?.[annotations.restore];

/** Whoever could write which backup an image is made from could read the backups of others, or any NFS export that nodes reach. */
const foreignRestore = ({ oldObject }: AdmissionRequest, object: KubeObject): AdmissionAnswer | undefined => {
  const text = restoreTextOf(object);
  if (text === undefined || text === restoreTextOf(oldObject)) return undefined;
  const message =
    'is written by backup-metadata alone: leave it out; images come back from the backup target by themselves';
  return refused('Forbidden', [{ field: `metadata.annotations[${annotations.restore}]`, message }]);
};

/** `undefined`: nothing to object to. Throws Unavailable where mutation was passed by, so that creation can be tried again. */
export const reviewAccess = async (
  request: AdmissionRequest,
  object: KubeObject,
  sourcesOf: SourcesOf<KubeObject>,
  kube: KubeClient,
): Promise<AdmissionAnswer | undefined> => {
  if (isOwnAccount(request)) return undefined;
  const restore = foreignRestore(request, object);
  if (restore !== undefined) return restore;
  const written = grantTextOf(object);
  if (request.operation === 'UPDATE') return written === grantTextOf(request.oldObject) ? undefined : foreignGrant;
  const { grants, denied } = await askAll(request, await sourcesOf(object, kube), kube);
  if (denied.length > 0) return refused('Forbidden', denied.map(toFault(request)));
  const text = toGrantText(grants);
  if (written === text) return undefined;
  if (written === undefined) throw new Unavailable('the right to its source was not written down by mutate: try again');
  return foreignGrant;
};

/** What is named anew must be for its author to use. Nothing is written down: what it leads to stays what it is. */
export const reviewUses = async (
  asker: Asker,
  now: readonly AskedSource[],
  before: readonly AskedSource[],
  kube: KubeClient,
): Promise<AdmissionAnswer | undefined> => {
  if (isOwnAccount(asker)) return undefined;
  const added = now.filter((one) => !before.some((other) => isDeepStrictEqual(one, other)));
  const { denied } = await askAll(asker, added, kube);
  return denied.length === 0 ? undefined : refused('Forbidden', denied.map(toFault(asker)));
};

const foreignGrant = refused('Forbidden', [{ field, message: 'is written by admission alone: leave it as it is' }]);
