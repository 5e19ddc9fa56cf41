// Server-side apply and managed fields.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { ownership } from '#local-cluster/conformance/topics/apply/ownership.ts';
import { fields } from '#local-cluster/conformance/topics/apply/fields.ts';

export const applyTopic: Topic = {
  topic: 'apply',
  cases: { ...ownership, ...fields },
};
