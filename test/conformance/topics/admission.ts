// Admission webhooks: when they are called, with what, and what their word counts.
import type { Topic } from '#test/conformance/suite/case.ts';
import { reviews } from '#test/conformance/topics/admission/reviews.ts';
import { matching } from '#test/conformance/topics/admission/matching.ts';
import { failures } from '#test/conformance/topics/admission/failures.ts';
import { configurations } from '#test/conformance/topics/admission/configurations.ts';

export const admission: Topic = {
  topic: 'admission',
  cases: { ...reviews, ...matching, ...failures, ...configurations },
};
