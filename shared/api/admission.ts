// AdmissionReview of admission.k8s.io/v1, the only version served.
import { z } from 'zod';
import type { KubeObject } from '#shared/api/object.ts';

const GroupVersionKind = z.object({ group: z.string(), version: z.string(), kind: z.string() });
const GroupVersionResource = z.object({ group: z.string(), version: z.string(), resource: z.string() });

/** An object as received: only its kind and metadata are validated. */
const AnyObject = z
  .looseObject({
    apiVersion: z.string().optional(),
    kind: z.string().optional(),
    metadata: z.looseObject({}),
  })
  .nullish()
  .transform((object) => (object ?? undefined) as KubeObject | undefined);

const AdmissionRequest = z.object({
  uid: z.string().min(1),
  kind: GroupVersionKind,
  resource: GroupVersionResource,
  subResource: z.string().optional(),
  name: z.string().optional(),
  namespace: z.string().optional(),
  operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
  userInfo: z.object({
    username: z.string().default(''),
    uid: z.string().optional(),
    groups: z.array(z.string()).default([]),
    extra: z.record(z.string(), z.array(z.string())).optional(),
  }),
  object: AnyObject,
  oldObject: AnyObject,
  /** Of the request itself, such as a deletion. */
  options: z.looseObject({ propagationPolicy: z.string().optional() }).nullish(),
  dryRun: z.boolean().default(false),
});
/** The request of the API server. `object` is absent on DELETE, `oldObject` on CREATE. */
export type AdmissionRequest = z.output<typeof AdmissionRequest>;

export const AdmissionReview = z.object({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: AdmissionRequest,
});

/** The response for the API server. */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: AdmissionStatus;
  readonly warnings?: readonly string[];
  readonly patchType?: 'JSONPatch';
  /** base64 of the JSON patch. */
  readonly patch?: string;
}

/** `metav1.Status` of a rejection. */
export interface AdmissionStatus {
  readonly status: 'Failure';
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly causes?: readonly { readonly reason: string; readonly field: string; readonly message: string }[];
  };
}
