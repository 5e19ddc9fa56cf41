// All backends, by the name users write. Admission, the reconciler and the generator look them up only here.
import type { BackendName } from '#shared/api/harvester/image.ts';
import type { Backend } from '#shared/backends/backend.ts';
import { backingImage } from '#shared/backends/backingimage/index.ts';
import { cdi } from '#shared/backends/cdi/index.ts';
import { csi } from '#shared/backends/csi/index.ts';

/** A name of the original products is either served or has a reason why not. */
export type Registration =
  | { readonly served: true; readonly backend: Backend }
  | { readonly served: false; /** What a user should do instead. */ readonly because: string };

export type BackendRegistry = Readonly<Record<string, Registration>>;

const served = <Observed>(backend: Backend<Observed>): Registration => ({ served: true, backend: backend as Backend });
const refused = (because: string): Registration => ({ served: false, because });

export const backends = {
  backingimage: served(backingImage),
  cdi: served(cdi),
  csi: served(csi),
} satisfies Readonly<Record<BackendName, Registration>>;

/** Defined for every name: an unknown name is not served either. */
export const registrationOf = (registry: BackendRegistry, name: string): Registration =>
  registry[name] ?? refused(`there is no such backend; write one of ${Object.keys(registry).join(', ')}`);
