// authentication.k8s.io: TokenReview, which returns the user of a token.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface TokenReview extends KubeObject {
  readonly spec: { readonly token: string; readonly audiences?: readonly string[] };
  /** Set in the response; a TokenReview is never stored. */
  readonly status?: {
    readonly authenticated?: boolean;
    readonly user?: {
      readonly username: string;
      readonly uid?: string;
      readonly groups?: readonly string[];
      readonly extra?: Readonly<Record<string, readonly string[]>>;
    };
    readonly error?: string;
  };
}

export const tokenReviews: ResourceType<TokenReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
};
