// JSON, merge and strategic-merge patches.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { jsonAndMerge } from '#local-cluster/conformance/topics/patch/json-and-merge.ts';
import { strategic } from '#local-cluster/conformance/topics/patch/strategic.ts';

export const patch: Topic = {
  topic: 'patch',
  cases: { ...jsonAndMerge, ...strategic },
};
