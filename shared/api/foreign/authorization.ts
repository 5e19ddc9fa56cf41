// authorization.k8s.io: SubjectAccessReview, which checks a permission of a user.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface SubjectAccessReview extends KubeObject {
  readonly spec: {
    readonly user: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
    readonly resourceAttributes: {
      readonly verb: string;
      /** Empty for the core group. */
      readonly group: string;
      /** Plural. */
      readonly resource: string;
      readonly subresource?: string | undefined;
      readonly namespace?: string | undefined;
      readonly name?: string | undefined;
    };
  };
  /** Set in the response; a SubjectAccessReview is never stored. */
  readonly status?: { readonly allowed: boolean; readonly reason?: string };
}

export const subjectAccessReviews: ResourceType<SubjectAccessReview> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
};
