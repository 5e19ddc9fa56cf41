// `validate`: rejects images that could never work, and deletions that would break one.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createValidator } from '#shared/resources/admission.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import { admissionFunction } from '#shared/runtime/admission-function.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface ValidateDeps {
  readonly kube: KubeClient;
  readonly log: Logger;
  /** Default: the kinds of CDI are served by Bullion. */
  readonly cdi?: CdiLook | undefined;
  /** CIDRs that sources may use although they are normally forbidden. Default: none. */
  readonly allowedAddresses?: readonly string[] | undefined;
}

export const createApp = ({ kube, log, cdi, allowedAddresses }: ValidateDeps): ReturnType<typeof admissionFunction> =>
  admissionFunction({ name: 'validate', log, review: createValidator(kube, { cdi, allowedAddresses }) });
