// Carried out when an offer is made, and by each sweep: each namespace that a DataSource is offered to has a DataSource of the same name, which stands for
// it. Where the offer was withdrawn, that one is removed. One that somebody else made is left alone. From the listings that the sweep makes anyway.
import { offerOf, offeredBy, reaches } from '#shared/access/offers.ts';
import { type DataSource, type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { labelsOfNamespace } from '#shared/api/label-selector.ts';
import { annotations } from '#shared/api/names.ts';
import { type KubeObject, isOfType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Action, remove } from '#shared/populate/actions.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { point } from '#shared/resources/data-source/point.ts';
import { execute } from '#shared/resources/execute.ts';
import { isOfOneObject, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface Offers {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  readonly carryOut: (deps: { readonly kube: KubeClient; readonly log: Logger }) => Promise<void>;
}

interface NamespaceLabels {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const nameOf = ({ metadata }: DataSource): string => `${metadata.namespace}/${metadata.name}`;

/** What it stands for, if that is in its own namespace and can be used. */
const targetOf = ({ metadata, status }: DataSource): DataSourceSource | undefined => {
  const { pvc, snapshot } = status?.source ?? {};
  const own = metadata.namespace;
  const isOwn = (pvc ?? snapshot)?.namespace === own;
  if (!isOwn) return undefined;
  return pvc === undefined ? { snapshot } : { pvc };
};

interface Wanted {
  readonly namespace: string;
  readonly offer: DataSource;
}

const wantedOf = (offers: readonly DataSource[], there: readonly NamespaceLabels[]): readonly Wanted[] =>
  offers.flatMap((offer) => {
    const selector = offerOf(offer);
    if (selector === undefined) return [];
    return there
      .filter(({ name, labels }) => name !== offer.metadata.namespace && reaches(selector, name, labels))
      .map(({ name }) => ({ namespace: name, offer }));
  });

/** Pure. `all`: every DataSource that is offered, or stands for one. */
export const planOffers = (all: readonly DataSource[], there: readonly NamespaceLabels[]): readonly Action[] => {
  const byName = new Map(all.map((source) => [nameOf(source), source]));
  const wanted = wantedOf(all, there);
  const kept = new Set<DataSource>();
  const made = wanted.flatMap(({ namespace, offer }): readonly Action[] => {
    const found = byName.get(`${namespace}/${offer.metadata.name}`);
    const isOurs = found === undefined || found.metadata.annotations?.[annotations.offeredBy] === nameOf(offer);
    const target = targetOf(offer);
    if (found !== undefined && isOurs) kept.add(found);
    if (!isOurs || target === undefined) return [];
    const marks = { [annotations.offeredBy]: nameOf(offer) };
    return point(found, target, { namespace, name: offer.metadata.name, annotations: marks });
  });
  const withdrawn = all.filter((source) => offeredBy(source) !== undefined && !kept.has(source));
  return [...made, ...withdrawn.flatMap((source) => remove(dataSourceKind.type, source))];
};

/** Costs nothing where nothing is offered. */
export const createOffers = (): Offers => {
  const all: DataSource[] = [];
  return {
    visit: (object) => {
      if (!isOfType(object, dataSourceKind.type)) return;
      if (offerOf(object) !== undefined || offeredBy(object) !== undefined) all.push(object);
    },
    carryOut: async ({ kube, log }) => {
      if (all.length === 0) return;
      const there = await Array.fromAsync(kube.listAll(namespaces));
      const labelled = there
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => ({ name: metadata.name, labels: labelsOfNamespace(metadata) }));
      for (const action of planOffers(all, labelled)) {
        try {
          await execute(kube, [action]);
        } catch (error) {
          // Changed or made meanwhile, also by somebody else under this name, or its namespace is being deleted: the next tick looks again.
          if (!isOfOneObject(error)) throw error;
          log.warn('offered DataSource not written', { error: messageOf(error) });
        }
      }
    },
  };
};

/** Carries out what a DataSource offers that was made or changed, without waiting for the sweep. */
export const carryOutOffer = async (
  { kube, log, cdi }: Pick<ReconcileDeps, 'kube' | 'log' | 'cdi'>,
  changed: KubeObject,
): Promise<void> => {
  if (!isOfType(changed, dataSourceKind.type) || offerOf(changed) === undefined || (await cdi()) === 'use') return;
  const offers = createOffers();
  for await (const source of kube.listAll(dataSourceKind.type)) offers.visit(source);
  await offers.carryOut({ kube, log });
};
