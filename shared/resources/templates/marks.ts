// Marks that identify objects made from templates. Pure.
import { createHash } from 'node:crypto';
import {
  groupKindOf,
  type KubeObject,
  type ObjectMeta,
  type ObjectRef,
  type OwnerReference,
} from '#shared/api/object.ts';
import { annotations } from '#shared/api/names.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type Action, patch, remove } from '#shared/populate/actions.ts';
import type { BootSources } from '#shared/golden/templates/expand.ts';
import { type TemplateRequest, type ObservedTemplates, cronKey } from '#shared/resources/templates/ask.ts';

export const componentLabel = 'app.kubernetes.io/component';
const component = 'templating';
export const markSelector = `${componentLabel}=${component},app.kubernetes.io/managed-by=bullion`;

/** `<kind>.<group>/<namespace>/<name>`: a successor with the same name takes over. */
export const markOf = (owner: ObjectRef): string => `${groupKindOf(owner)}/${owner.namespace ?? ''}/${owner.name}`;

const adopted = ' adopted';

/** The owner of an object, if it was made from a template. */
export const readMark = ({
  metadata,
}: KubeObject): { readonly owner: string; readonly isAdopted: boolean } | undefined => {
  const mark = metadata.annotations?.[annotations.template];
  if (mark === undefined) return undefined;
  const isAdopted = mark.endsWith(adopted);
  return { owner: isAdopted ? mark.slice(0, -adopted.length) : mark, isAdopted };
};

/** Owner references cannot cross namespaces. The creator of an object is its controller; an adopter is not. */
const ownersOf = (owner: ObjectRef, namespace: string, before: readonly OwnerReference[] | undefined) => {
  const { apiVersion, kind, name, uid } = owner;
  if (owner.namespace !== namespace) return {};
  if (before?.some((reference) => reference.uid === uid) === true) return { ownerReferences: before };
  const own = { apiVersion, kind, name, uid, controller: before === undefined, blockOwnerDeletion: false };
  return { ownerReferences: [...(before ?? []), own] };
};

/** Metadata of an object made from a template, or adopted if `before` is set. */
export const markedMetadata = (
  owner: ObjectRef,
  key: { readonly namespace: string; readonly name: string },
  before?: KubeObject,
): ObjectMeta & Required<Pick<ObjectMeta, 'labels' | 'annotations'>> => {
  const isAdopted = before === undefined ? false : (readMark(before)?.isAdopted ?? true);
  return {
    ...key,
    labels: {
      'app.kubernetes.io/name': 'data-sources',
      [componentLabel]: component,
      'app.kubernetes.io/managed-by': 'bullion',
    },
    annotations: {
      [annotations.template]: `${markOf(owner)}${isAdopted ? adopted : ''}`,
      // The operator, if installed later, recognizes its objects by these.
      'operator-sdk/primary-resource': `${owner.namespace ?? ''}/${owner.name}`,
      'operator-sdk/primary-resource-type': groupKindOf(owner),
    },
    ...ownersOf(owner, key.namespace, before === undefined ? undefined : (before.metadata.ownerReferences ?? [])),
  };
};

/** Releases an adopted object. */
export const unmarkingPatch = (): object => ({
  metadata: {
    labels: { 'app.kubernetes.io/name': null, [componentLabel]: null, 'app.kubernetes.io/managed-by': null },
    annotations: {
      [annotations.template]: null,
      [annotations.autoUpdate]: null,
      'operator-sdk/primary-resource': null,
      'operator-sdk/primary-resource-type': null,
    },
  },
});

/** Detects whether a cron still matches its template, independently of defaults that the API server added to its spec. */
export const fingerprint = (spec: object): string =>
  createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16);

// Removes objects of templates that no longer exist. Pure; part of the plan of templates.

/** Crons first: their children are removed with them. */
export const removeUnwanted = (asks: readonly TemplateRequest[], observed: ObservedTemplates): readonly Action[] => {
  const kept = new Set(asks.filter(({ wanted }) => wanted === undefined).map(({ owner }) => markOf(owner)));
  const names = (pick: (wanted: BootSources) => readonly string[]) =>
    new Set(asks.flatMap(({ wanted }) => (wanted === undefined ? [] : pick(wanted))));
  const crons = names((wanted) => wanted.crons.map(cronKey));
  const sources = names((wanted) => wanted.sources.map(({ name }) => name));
  const isOurs = (object: DataImportCron | DataSource): boolean => {
    const mark = readMark(object);
    return mark !== undefined && !kept.has(mark.owner);
  };
  const goingCrons = [...observed.crons].flatMap(([key, cron]) => (!crons.has(key) && isOurs(cron) ? [cron] : []));
  const goingSources = [...observed.sources].flatMap(([name, source]) =>
    !sources.has(name) && isOurs(source) ? [source] : [],
  );
  const isFed = ({ metadata }: DataSource): boolean =>
    [...observed.crons.values()].some((cron) => cron.metadata.name === metadata.labels?.[cdiLabels.cron]);
  return [
    ...goingCrons.flatMap((cron) => remove(dataImportCronKind.type, cron)),
    ...goingSources.filter((source) => !isFed(source)).flatMap(release),
  ];
};

/** A DataSource that another client created is not deleted. */
const release = (source: DataSource): readonly Action[] =>
  readMark(source)?.isAdopted === true
    ? [patch(dataSourceKind.type, source, unmarkingPatch())]
    : remove(dataSourceKind.type, source);
