// What must be there for the backingimage backend to work. Called by its declaration and by its plans.
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { Need } from '#shared/backends/backend.ts';

export const longhornMissing =
  'Longhorn is not installed in this cluster: install it, or write `backend: csi`, which uses any CSI storage class';

export const need: Need = {
  type: backingImages as unknown as ResourceType,
  namespace: longhornNamespace,
  because: longhornMissing,
};
