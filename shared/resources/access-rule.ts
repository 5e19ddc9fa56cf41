// Checks whether the author of an object may use its sources: `mutate` checks and records it, `validate` checks and enforces it, before any
// other answer. Why this cannot be forged: shared/access/README.md.
import { isDeepStrictEqual } from 'node:util';
import {
  anyName,
  type Grant,
  grantFor,
  type Requester,
  toGrantText,
  type UsedSource,
} from '#shared/access/permissions.ts';
import { isOffered } from '#shared/access/offers.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { annotations, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AdmissionAnswer, refused } from '#shared/runtime/admission-function.ts';
import { type Fault, Unavailable } from '#shared/runtime/errors.ts';

/** A source, and its description for messages. */
export interface AskedSource extends UsedSource {
  readonly field: string;
  /** Description of a source behind a reference of the user, who may not be allowed to know its name. */
  readonly shown?: string;
  /** A possible later target of a reference: granted if allowed, and not required otherwise. */
  readonly optional?: boolean;
}

/** Sources of an object outside of its author's namespace. At most one or two look-ups. */
export type SourcesOf<T extends KubeObject> = (
  object: T,
  kube: KubeClient,
) => readonly AskedSource[] | Promise<readonly AskedSource[]>;

const field = `metadata.annotations[${annotations.granted}]`;
const grantTextOf = (object: KubeObject | undefined): string | undefined =>
  object?.metadata.annotations?.[annotations.granted];

/** The user whose permissions are checked: usually the author of the request. */
interface Subject {
  readonly userInfo: Requester;
}

/** Our functions check the permissions of the users they act for, and record the result. */
const isOwnAccount = ({ userInfo }: Subject): boolean => userInfo.username.startsWith(ownAccountPrefix);

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

const askAll = async ({ userInfo }: Subject, sources: readonly AskedSource[], kube: KubeClient): Promise<Asked> => {
  const asked = await Promise.all(
    sources.map(async (source) => ({ source, grant: await grantFor(kube, userInfo, source) })),
  );
  return {
    grants: asked.flatMap(({ grant }) => grant ?? []),
    denied: asked.flatMap(({ source, grant }) => (grant === undefined && source.optional !== true ? [source] : [])),
  };
};

/** The object with its grants: those of its author at creation, which stay unchanged later. */
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
  ({ userInfo }: Subject) =>
  (source: AskedSource): Fault => ({
    field: source.field,
    message: `user ${userInfo.username} is not allowed to ${descriptionOf[source.use]} ${shownOf(source)}: ${adviceOf[source.use]}`,
  });

const descriptionOf = {
  'clone-claim': 'clone from',
  'clone-snapshot': 'clone from',
  'export-claim': 'export the claim',
  'use-image': 'use the image',
  'read-secret': 'use the Secret',
} as const;

const cloneAdvice = `this requires permission to create datavolumes/source of cdi.kubevirt.io in its namespace, or that a DataSource offers it (${annotations.offeredTo})`;
const adviceOf = {
  'clone-claim': cloneAdvice,
  'clone-snapshot': cloneAdvice,
  'export-claim': 'this requires permission to get it',
  'use-image': 'this requires permission to get it',
  'read-secret': 'this requires permission to get it; or use one in the namespace of the image',
} as const;

const restoreTextOf = (object: KubeObject | undefined): string | undefined =>
  object?.metadata.annotations?.[annotations.restore];

/** A user who could set the backup of an image could read the backups of others, or any NFS export that nodes reach. */
const foreignRestore = ({ oldObject }: AdmissionRequest, object: KubeObject): AdmissionAnswer | undefined => {
  const text = restoreTextOf(object);
  if (text === undefined || text === restoreTextOf(oldObject)) return undefined;
  const message =
    'may be set only by backup-metadata: leave it out; images are restored from the backup target automatically';
  return refused('Forbidden', [{ field: `metadata.annotations[${annotations.restore}]`, message }]);
};

/** What is offered to the namespace of the object is no right of its author: nothing is recorded, and it is looked up again when the volume is made. */
const withoutOffers = async (
  kube: KubeClient,
  namespace: string | undefined,
  denied: readonly AskedSource[],
): Promise<readonly AskedSource[]> => {
  const offered = await Promise.all(denied.map((source) => isOffered(kube, namespace, source)));
  return denied.filter((_source, index) => offered[index] !== true);
};

/** `undefined`: allowed. Throws Unavailable if mutation was bypassed, so that the creation can be retried. */
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
  const asked = await askAll(request, await sourcesOf(object, kube), kube);
  const { grants } = asked;
  const denied = await withoutOffers(kube, object.metadata.namespace, asked.denied);
  if (denied.length > 0) return refused('Forbidden', denied.map(toFault(request)));
  const text = toGrantText(grants);
  if (written === text) return undefined;
  if (written === undefined)
    throw new Unavailable('the permission for its source was not recorded by mutate: try again');
  return foreignGrant;
};

/** Newly named objects must be permitted to the author. Nothing is recorded: their target is fixed. */
export const reviewUses = async (
  subject: Subject,
  now: readonly AskedSource[],
  before: readonly AskedSource[],
  kube: KubeClient,
): Promise<AdmissionAnswer | undefined> => {
  if (isOwnAccount(subject)) return undefined;
  const added = now.filter((one) => !before.some((other) => isDeepStrictEqual(one, other)));
  const { denied } = await askAll(subject, added, kube);
  return denied.length === 0 ? undefined : refused('Forbidden', denied.map(toFault(subject)));
};

const foreignGrant = refused('Forbidden', [{ field, message: 'may be set only by admission: do not change it' }]);
