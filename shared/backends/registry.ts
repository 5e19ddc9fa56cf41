// Every backend, by the name users write. Admission, the driver and the generator look here and nowhere else.
import type { Backend } from '#shared/backends/backend.ts';
import { csi } from '#shared/backends/csi/index.ts';
import type { BackendName } from '#shared/backends/names.ts';

/** A name users may know from the original products is either served or says why not. */
export type Registration =
  | { readonly served: true; readonly backend: Backend }
  | { readonly served: false; /** What a user should do instead. */ readonly because: string };

export type BackendRegistry = Readonly<Record<BackendName, Registration>>;

const served = <Seen>(backend: Backend<Seen>): Registration => ({ served: true, backend: backend as Backend });
const refused = (because: string): Registration => ({ served: false, because });

export const backends = {
  backingimage: refused(
    'this installation has no Longhorn backend; write `backend: csi`, which uses any CSI storage class',
  ),
  cdi: refused('this installation has no CDI backend; write `backend: csi`, which uses any CSI storage class'),
  csi: served(csi),
} satisfies BackendRegistry;
