// `kubectl get` tables: the columns of a kind and the cells of one object.
import type { ApiObject, Fields } from '../objects/object.ts';

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** 0: always shown; above: with `-o wide`. */
  readonly priority: number;
}

/** How objects of a kind are converted to rows. */
export interface TableShape {
  readonly columns: readonly Column[];
  readonly cells: (object: ApiObject, now: Date) => readonly unknown[];
}

export type IncludeObject = 'None' | 'Metadata' | 'Object';

export interface TableBody extends Fields {
  readonly kind: 'Table';
  readonly apiVersion: string;
  readonly metadata: Fields;
  readonly columnDefinitions: readonly Column[];
  readonly rows: readonly Fields[];
}

export const toPartial = (object: ApiObject): Fields => ({
  kind: 'PartialObjectMetadata',
  apiVersion: 'meta.k8s.io/v1',
  metadata: object.metadata,
});

export const toRow = (shape: TableShape, object: ApiObject, include: IncludeObject, now: Date): Fields => ({
  cells: shape.cells(object, now),
  object: include === 'None' ? null : include === 'Metadata' ? toPartial(object) : object,
});

/** A table of `rows`; watches omit the columns after the first event. */
export const toTable = (columns: readonly Column[], rows: readonly Fields[], metadata: Fields): TableBody => ({
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata,
  columnDefinitions: columns,
  rows,
});
