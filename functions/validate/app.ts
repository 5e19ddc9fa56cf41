// `validate`: refuses images that could never work, and deletions that would break one.
import type { Hono } from 'hono';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createValidator } from '#shared/resources/admission.ts';
import { admissionFunction } from '#shared/runtime/admission-function.ts';
import type { CdiMode } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface Deps {
  readonly kube: KubeClient;
  readonly log: Logger;
  /** Left out: our own. */
  readonly cdi?: CdiMode | undefined;
}

export const createApp = ({ kube, log, cdi }: Deps): Hono =>
  admissionFunction({ name: 'validate', log, review: createValidator(kube, cdi) });
