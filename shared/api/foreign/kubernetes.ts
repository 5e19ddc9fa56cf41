// admissionregistration.k8s.io: only the fields we read or write.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

// The fields of Deployments that are read.

export interface Deployment extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

export const deployments: ResourceType<Deployment> = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};

// authentication.k8s.io: TokenReview, which returns the user of a token.

interface TokenReview extends KubeObject {
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

// authorization.k8s.io: SubjectAccessReview, which checks a permission of a user.

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

// coordination.k8s.io: only the fields we read or write.

export interface Lease extends KubeObject {
  readonly spec: {
    readonly holderIdentity?: string;
    readonly leaseTransitions?: number;
    readonly leaseDurationSeconds?: number;
    /** RFC 3339 with microseconds. */
    readonly acquireTime?: string;
    readonly renewTime?: string;
  };
}

export const leases: ResourceType<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

// CustomResourceDefinitions: only the fields we read.

export interface CustomResourceDefinition extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

export const crds: ResourceType<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig: { readonly caBundle?: string; readonly url?: string };
  }[];
}

const ofKind = (kind: string, plural: string): ResourceType<WebhookConfiguration> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: false,
});

export const validatingWebhookConfigurations = ofKind(
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
);
export const mutatingWebhookConfigurations = ofKind('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations');
