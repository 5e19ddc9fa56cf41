// RBAC and the reviews that ask it.
import type { Topic } from '#test/conformance/suite/case.ts';
import { grants } from '#test/conformance/topics/authorization/grants.ts';
import { accessReviews } from '#test/conformance/topics/authorization/access-reviews.ts';

export const authorization: Topic = {
  topic: 'authorization',
  cases: { ...grants, ...accessReviews },
};
