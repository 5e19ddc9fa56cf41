// The conditions of a namespace that is being deleted. Called by namespaces.ts; clients read these conditions, kubectl prints them.
import type { Condition } from '#shared/api/object.ts';

/** What is left after a pass over the content of a namespace. */
export interface NamespaceContent {
  /** Objects that still exist, by kind such as `configmaps.` or `jobs.batch`. */
  readonly remaining: ReadonlyMap<string, number>;
  /** The number of objects with each finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** Why some objects could not be listed or deleted. */
  readonly failures: readonly string[];
  /** Why discovery of some groups failed. */
  readonly unknown: readonly string[];
}

export const isEmptied = ({ remaining, failures, unknown }: NamespaceContent): boolean =>
  remaining.size === 0 && failures.length === 0 && unknown.length === 0;

const counted = (counts: ReadonlyMap<string, number>, verb: string): string =>
  [...counts]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} ${verb} ${count} resource instances`)
    .join(', ');

/** The conditions of the content, with the times of `previous` where nothing changed. `now` is RFC 3339. */
export const toConditions = (
  content: NamespaceContent,
  previous: readonly Condition[],
  now: string,
): readonly Condition[] =>
  [
    discoveryFailure(content),
    condition(
      'NamespaceDeletionGroupVersionParsingFailure',
      false,
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    contentFailure(content),
    contentRemaining(content),
    finalizersRemaining(content),
  ].map((next) => {
    const before = previous.find(({ type }) => type === next.type);
    const lastTransitionTime = before?.status === next.status ? (before.lastTransitionTime ?? now) : now;
    return { ...next, lastTransitionTime };
  });

export const isSameConditions = (a: readonly Condition[], b: readonly Condition[]): boolean =>
  a.length === b.length &&
  a.every((one) => b.some((two) => one.type === two.type && one.status === two.status && one.message === two.message));

const condition = (type: string, holds: boolean, reason: string, message: string): Condition => ({
  type,
  status: holds ? 'True' : 'False',
  reason,
  message,
});

const discoveryFailure = ({ unknown }: NamespaceContent): Condition =>
  unknown.length > 0
    ? condition(
        'NamespaceDeletionDiscoveryFailure',
        true,
        'DiscoveryFailed',
        `Discovery failed for some groups, ${unknown.length} failing: ${unknown.join(', ')}`,
      )
    : condition(
        'NamespaceDeletionDiscoveryFailure',
        false,
        'ResourcesDiscovered',
        'All resources successfully discovered',
      );

const contentFailure = ({ remaining, failures }: NamespaceContent): Condition =>
  failures.length > 0
    ? condition(
        'NamespaceDeletionContentFailure',
        true,
        'ContentDeletionFailed',
        `Failed to delete all resource types, ${failures.length} remaining: ${failures.join(', ')}`,
      )
    : condition(
        'NamespaceDeletionContentFailure',
        false,
        'ContentDeleted',
        remaining.size > 0
          ? 'All content successfully deleted, may be waiting on finalization'
          : 'All content successfully deleted',
      );

const contentRemaining = ({ remaining }: NamespaceContent): Condition =>
  remaining.size > 0
    ? condition(
        'NamespaceContentRemaining',
        true,
        'SomeResourcesRemain',
        `Some resources are remaining: ${counted(remaining, 'has')}`,
      )
    : condition('NamespaceContentRemaining', false, 'ContentRemoved', 'All content successfully removed');

const finalizersRemaining = ({ finalizers }: NamespaceContent): Condition =>
  finalizers.size > 0
    ? condition(
        'NamespaceFinalizersRemaining',
        true,
        'SomeFinalizersRemain',
        `Some content in the namespace has finalizers remaining: ${counted(finalizers, 'in')}`,
      )
    : condition(
        'NamespaceFinalizersRemaining',
        false,
        'ContentHasNoFinalizers',
        'All content-preserving finalizers finished',
      );
