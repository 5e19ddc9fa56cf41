// Admission webhooks: when they are called, with what, and what their word counts.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { reviews } from '#local-cluster/conformance/topics/admission/reviews.ts';
import { matching } from '#local-cluster/conformance/topics/admission/matching.ts';
import { failures } from '#local-cluster/conformance/topics/admission/failures.ts';
import { configurations } from '#local-cluster/conformance/topics/admission/configurations.ts';

export const admission: Topic = {
  topic: 'admission',
  cases: { ...reviews, ...matching, ...failures, ...configurations },
};
