// What is known of the storage of versions, where a policy has it outlive their claims and snapshots.
import { z } from 'zod';
import type { PersistentVolume } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshotContent } from '#shared/api/foreign/snapshot.ts';

const Texts = z.record(z.string(), z.string()).optional();
const Recipe = z.object({ labels: Texts, annotations: Texts, spec: z.looseObject({}) });
export type Recipe = z.infer<typeof Recipe>;

export const KeptRecord = z.object({
  version: z.string(),
  /** What would happen to it without us. */
  policy: z.enum(['Delete', 'Retain']),
  /** The claim or the snapshot. */
  made: Recipe,
  /** The data volume that imported it. */
  import: Recipe.optional(),
  /** RFC 3339: since when its claim or snapshot is gone. */
  deleted: z.string().optional(),
});
export type KeptRecord = z.infer<typeof KeptRecord>;

interface Found {
  /** Its claim or snapshot is there, or on its way out. */
  readonly isLive: boolean;
}

/** The storage of a version, as far as it carries our record. */
export type KeptStorage = Found & { readonly record: KeptRecord } & (
    | { readonly form: 'volume'; readonly object: PersistentVolume }
    | { readonly form: 'snapshot'; readonly object: VolumeSnapshotContent }
  );

/** Of a version that is there, and not recorded yet. */
export type UnkeptStorage = { readonly name: string } & (
  | { readonly form: 'volume'; readonly object: PersistentVolume }
  | { readonly form: 'snapshot'; readonly object: VolumeSnapshotContent }
);

export interface ObservedStorage {
  readonly kept: readonly KeptStorage[];
  readonly unkept: readonly UnkeptStorage[];
  /** Names of versions that are asked for, and that a claim or snapshot of somebody else has. */
  readonly taken: ReadonlySet<string>;
}

export const noStorage: ObservedStorage = { kept: [], unkept: [], taken: new Set() };
