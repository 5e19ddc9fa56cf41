// The form of the rules about objects that are not ours to define, and must not be pulled from under an image or into the wrong hands.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { AdmissionAnswer } from '#shared/runtime/admission-function.ts';

export interface ProtectedRule {
  /** A word, unique in its table; RULES.md has a row for each. */
  readonly id: string;
  readonly types: readonly ResourceType[];
  readonly on: AdmissionRequest['operation'];
  /** One look-up or one page for each thing the object names, and no more. Throws AppErrors of the client. */
  readonly check: (request: AdmissionRequest, kube: KubeClient) => Promise<AdmissionAnswer> | AdmissionAnswer;
}

export const erased = (...types: readonly unknown[]): readonly ResourceType[] => types as readonly ResourceType[];
