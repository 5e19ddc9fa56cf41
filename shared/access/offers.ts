// Golden images for everybody, or for namespaces by their labels: the annotation `bullion.dev/offered-to` on a DataSource, written by who may clone from its
// namespace. It is looked up whenever a volume is to be made, in the namespace of the source, so that nobody else can widen it.
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { type LabelSelector, labelsOfNamespace, matchesLabels } from '#shared/api/label-selector.ts';
import { annotations, unguardedNamespaces } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import type { UsedSource } from './permissions.ts';

const name = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`;
const value = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?`;
const equality = new RegExp(`^(${name})\\s*(==?|!=)\\s*(${value})$`);
const set = new RegExp(`^(${name})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const existence = new RegExp(`^(!?)\\s*(${name})$`);
const valueOnly = new RegExp(`^${value}$`);

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

type Read = (term: string) => Requirement | undefined;

const readEquality: Read = (term) => {
  const found = equality.exec(term);
  if (found === null) return undefined;
  const [, key = '', operator, one = ''] = found;
  return { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [one] };
};

const readSet: Read = (term) => {
  const found = set.exec(term);
  if (found === null) return undefined;
  const [, key = '', operator, listed = ''] = found;
  const values = listed.split(',').map((part) => part.trim());
  if (!values.every((part) => valueOnly.test(part))) return undefined;
  return { key, operator: operator === 'in' ? 'In' : 'NotIn', values };
};

const readExistence: Read = (term) => {
  const found = existence.exec(term);
  return found === null ? undefined : { key: found[2] ?? '', operator: found[1] === '!' ? 'DoesNotExist' : 'Exists' };
};

const readTerm: Read = (term) => readEquality(term) ?? readSet(term) ?? readExistence(term);

/** `*`, or a label selector as kubectl has it; `undefined`: it is neither. An empty text selects nothing. */
export const parseOffer = (text: string): LabelSelector | undefined => {
  if (text.trim() === '*') return {};
  // Commas within brackets separate values.
  const terms = text.split(/,(?![^(]*\))/).map((term) => readTerm(term.trim()));
  return terms.every((term) => term !== undefined) ? { matchExpressions: terms } : undefined;
};

export const offerOf = ({ metadata }: Pick<DataSource, 'metadata'>): LabelSelector | undefined => {
  const text = metadata.annotations?.[annotations.offeredTo];
  return text === undefined || metadata.deletionTimestamp !== undefined ? undefined : parseOffer(text);
};

/** The DataSource that another one of a tenant stands for: `<namespace>/<name>`. It only says where to look. */
export const offeredBy = ({ metadata }: Pick<DataSource, 'metadata'>) => {
  const [namespace = '', of = '', ...more] = metadata.annotations?.[annotations.offeredBy]?.split('/') ?? [];
  return namespace === '' || of === '' || more.length > 0 ? undefined : { namespace, name: of };
};

export const readNamespaceLabels = async (kube: KubeClient, namespace: string) =>
  labelsOfNamespace((await kube.get(namespaces, { name: namespace }))?.metadata ?? { name: namespace });

/** Only what its own namespace holds can be offered. */
const matches = ({ metadata, status }: DataSource, { use, namespace, name: wanted }: UsedSource): boolean => {
  const target =
    use === 'clone-claim' ? status?.source?.pvc : use === 'clone-snapshot' ? status?.source?.snapshot : undefined;
  return target !== undefined && target.name === wanted && (target.namespace ?? metadata.namespace) === namespace;
};

const isClone = ({ use }: UsedSource): boolean => use === 'clone-claim' || use === 'clone-snapshot';

/** Admission does not check there who makes an offer, and nobody makes disks there. */
const isUnguarded = (namespace: string): boolean => (unguardedNamespaces as readonly string[]).includes(namespace);

/** Where Kubernetes and what is installed into it run, such as longhorn-system. */
const isOfSystem = (namespace: string): boolean => namespace.startsWith('kube-') || namespace.endsWith('-system');

/** `*` and selectors that only exclude are about the namespaces of people: a system's own must be meant, by its name or the value of a label. */
const isMeant = ({ matchExpressions = [] }: LabelSelector): boolean =>
  matchExpressions.some(({ operator }) => operator === 'In');

export const reaches = (offer: LabelSelector, namespace: string, found: Readonly<Record<string, string>>): boolean =>
  !isUnguarded(namespace) && (!isOfSystem(namespace) || isMeant(offer)) && matchesLabels(offer, found);

export const isOffered = async (kube: KubeClient, to: string | undefined, source: UsedSource): Promise<boolean> => {
  if (to === undefined || !isClone(source) || isUnguarded(source.namespace)) return false;
  const offers = (await allIfServed(kube, dataSourceKind.type, { namespace: source.namespace })).flatMap((one) =>
    matches(one, source) ? (offerOf(one) ?? []) : [],
  );
  if (offers.length === 0) return false;
  const found = await readNamespaceLabels(kube, to);
  return offers.some((offer) => reaches(offer, to, found));
};
