// `mutate`: sets defaults of images.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createMutator } from '#shared/resources/admission.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import { admissionFunction } from '#shared/runtime/admission-function.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface MutateDeps {
  readonly kube: KubeClient;
  readonly log: Logger;
  /** Default: the kinds of CDI are served by Bullion. */
  readonly cdi?: CdiLook | undefined;
}

export const createApp = ({ kube, log, cdi }: MutateDeps): ReturnType<typeof admissionFunction> =>
  admissionFunction({ name: 'mutate', log, review: createMutator(kube, cdi) });
