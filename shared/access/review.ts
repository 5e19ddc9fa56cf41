// Asks the API server whether a user may do something (SubjectAccessReview). Whoever acts for users under an account of its own asks this
// first; `sources.ts` knows what to ask for the content of images and volumes.
import { type SubjectAccessReview, subjectAccessReviews } from '#shared/api/foreign/authorization.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** Who asks, as the API server names users: the `userInfo` of an admission review, or the status of a TokenReview. */
export interface Requester {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** A service account as the API server names it, with the groups it is always of. */
export const serviceAccountRequester = (namespace: string, name: string): Requester => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

/** What a user would do. Without `name`: to every object of the namespace; without `namespace`: in every namespace. */
export type Wish = SubjectAccessReview['spec']['resourceAttributes'];

/** Throws the AppErrors of the client when the API server cannot be asked; nobody may anything then. */
export const isAllowed = async (kube: KubeClient, requester: Requester, wish: Wish): Promise<boolean> => {
  const { username, uid, groups, extra } = requester;
  const { status } = await kube.create(subjectAccessReviews, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: { name: '' },
    spec: {
      user: username,
      ...(uid === undefined ? {} : { uid }),
      ...(groups === undefined ? {} : { groups }),
      ...(extra === undefined ? {} : { extra }),
      resourceAttributes: wish,
    },
  });
  return status?.allowed === true;
};
