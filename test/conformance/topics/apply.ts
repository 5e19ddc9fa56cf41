// Server-side apply and managed fields.
import type { Topic } from '#test/conformance/suite/case.ts';
import { ownership } from '#test/conformance/topics/apply/ownership.ts';
import { fields } from '#test/conformance/topics/apply/fields.ts';

export const applyTopic: Topic = {
  topic: 'apply',
  cases: { ...ownership, ...fields },
};
