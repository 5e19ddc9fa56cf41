// RBAC and the reviews that ask it.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { grants } from '#local-cluster/conformance/topics/authorization/grants.ts';
import { accessReviews } from '#local-cluster/conformance/topics/authorization/access-reviews.ts';

export const authorization: Topic = {
  topic: 'authorization',
  cases: { ...grants, ...accessReviews },
};
