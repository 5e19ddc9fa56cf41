// The children the backingimage backend follows.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import type { Sidecar } from '#shared/backends/backend.ts';
import { follow } from '#shared/backends/sidecar.ts';

export const sidecars: readonly Sidecar[] = [
  follow(backingImages, ['create', 'patch', 'delete'], () => true),
  // Only that it is gone matters: it is made again.
  follow(storageClasses, ['create', 'delete'], () => false),
];
