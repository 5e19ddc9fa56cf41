// How ownership changes with an object: an update owns what it changes, an apply owns what it contains, conflicts
// with fields of others, and removes what it contained before and no longer does.

import type { Json, JsonObject } from '../schema/json.ts';
import { showPath, type FieldPath } from './field-path.ts';
import {
  differenceOf,
  intersectionOf,
  isEmptySet,
  pathsOf,
  recursiveDifferenceOf,
  unionOf,
  type FieldSet,
} from './field-set.ts';
import type { Manager, Managers } from './managers.ts';
import { compareFields, fieldsOf, type Comparison } from './typed-fields.ts';
import { mergeTyped, removeTyped, withNamedFields } from './typed-merge.ts';
import type { Shape } from './typed-value.ts';

export interface Conflict {
  readonly manager: Manager;
  readonly path: FieldPath;
}

/** The place of a change and the fields of it that nobody can own. */
export interface Scope {
  readonly shape: Shape;
  /** Fields that this endpoint ignores, such as the status on the main resource. */
  readonly reset: FieldSet;
}

const compareIn = (scope: Scope, live: Json, next: Json): Comparison => {
  const { added, removed, modified } = compareFields(scope.shape, live, next);
  const visible = (set: FieldSet): FieldSet => recursiveDifferenceOf(set, scope.reset);
  return { added: visible(added), removed: visible(removed), modified: visible(modified) };
};

const changedOf = (comparison: Comparison): FieldSet => unionOf(comparison.modified, comparison.added);

const conflictsOf = (managers: Managers, comparison: Comparison, self: string): Conflict[] =>
  [...managers].flatMap(([id, manager]) =>
    id === self
      ? []
      : pathsOf(intersectionOf(manager.fields, changedOf(comparison))).map((path) => ({ manager, path })),
  );

/** All other managers lose the fields that were changed or removed. */
const takeFromOthers = (managers: Managers, comparison: Comparison, self: string): Managers =>
  new Map(
    [...managers]
      .map(([id, manager]): [string, Manager] => {
        if (id === self) return [id, manager];
        const kept = differenceOf(differenceOf(manager.fields, changedOf(comparison)), comparison.removed);
        return [id, { ...manager, fields: kept }];
      })
      .filter(([, manager]) => !isEmptySet(manager.fields)),
  );

export interface Taken {
  readonly managers: Managers;
  /** The fields that the updating manager changed; empty when there are none. */
  readonly changed: FieldSet;
}

/** Ownership after an update from `live` to `next`. */
export const takeByUpdate = (scope: Scope, live: JsonObject, next: JsonObject, managers: Managers): Taken => {
  const comparison = compareIn(scope, live, next);
  return {
    managers: takeFromOthers(managers, comparison, ''),
    changed: changedOf(comparison),
  };
};

const ownedByAll = (managers: Managers): FieldSet =>
  [...managers.values()].map(({ fields }) => fields).reduce(unionOf, { members: new Set(), children: new Map() });

/** Removes the fields that the manager applied before, unless it still does, another manager owns them, or it never owned them. */
const dropUnstated = (shape: Shape, merged: JsonObject, managers: Managers, last: FieldSet): JsonObject => {
  if (isEmptySet(last)) return merged;
  const named = (set: FieldSet): FieldSet => withNamedFields(shape, set);
  const allOf = (object: JsonObject): FieldSet => named(fieldsOf(shape, object));
  const mergedSet = allOf(merged);
  const pruned = removeTyped(shape, merged, named(last));
  const owned = unionOf(allOf(pruned), named(ownedByAll(managers)));
  const withOwned = removeTyped(shape, merged, differenceOf(mergedSet, owned));
  const gone = intersectionOf(differenceOf(mergedSet, allOf(withOwned)), named(last));
  return removeTyped(shape, merged, gone);
};

export type Applied =
  | { readonly kind: 'applied'; readonly object: JsonObject; readonly managers: Managers }
  | { readonly kind: 'conflicting'; readonly conflicts: readonly Conflict[] };

export interface ApplyInput {
  readonly scope: Scope;
  readonly live: JsonObject;
  readonly config: JsonObject;
  readonly managers: Managers;
  /** Identity of `manager` among the managers. */
  readonly self: string;
  readonly manager: Omit<Manager, 'fields'>;
  readonly force: boolean;
}

/** The object and its managers after an apply, or the fields of others that it would change. */
export const applyOwned = (input: ApplyInput): Applied => {
  const { scope, live, config, managers, self } = input;
  const merged = mergeTyped(scope.shape, live, config) as JsonObject;
  const last = managers.get(self)?.fields ?? { members: new Set(), children: new Map() };
  const fields = recursiveDifferenceOf(fieldsOf(scope.shape, config), scope.reset);
  const stating = new Map(managers).set(self, { ...input.manager, fields });
  const object = dropUnstated(scope.shape, merged, stating, last);
  const comparison = compareIn(scope, live, object);
  const conflicts = conflictsOf(stating, comparison, self);
  if (!input.force && conflicts.length > 0) return { kind: 'conflicting', conflicts };
  return { kind: 'applied', object, managers: takeFromOthers(stating, comparison, self) };
};

const showManager = (manager: Manager): string => {
  const name = JSON.stringify(manager.name);
  const subresource = manager.subresource === '' ? '' : ` with subresource ${JSON.stringify(manager.subresource)}`;
  return `${name}${subresource}${manager.operation === 'Update' ? ` using ${manager.apiVersion}` : ''}`;
};

export interface ConflictReport {
  readonly message: string;
  readonly causes: readonly { readonly reason: string; readonly message: string; readonly field: string }[];
}

/** The conflicts as in the Status of a 409. */
export const reportConflicts = (conflicts: readonly Conflict[]): ConflictReport => {
  const causes = conflicts.map(({ manager, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${showManager(manager)}`,
    field: showPath(path),
  }));
  const [first] = causes;
  if (causes.length === 1 && first !== undefined)
    return { message: `Apply failed with 1 conflict: ${first.message}: ${first.field}`, causes };
  const groups = Object.entries(Object.groupBy(causes, ({ message }) => message)).toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const lines = groups.flatMap(([message, group = []]) => [
    `${message.replace(/^conflict /, 'conflicts ')}:`,
    ...group.map(({ field }) => `- ${field}`),
  ]);
  return { message: `Apply failed with ${causes.length} conflicts: ${lines.join('\n')}`, causes };
};
