// JSON, merge and strategic-merge patches.
import type { Topic } from '#test/conformance/suite/case.ts';
import { jsonAndMerge } from '#test/conformance/topics/patch/json-and-merge.ts';
import { strategic } from '#test/conformance/topics/patch/strategic.ts';

export const patch: Topic = {
  topic: 'patch',
  cases: { ...jsonAndMerge, ...strategic },
};
