// kubectl as people use it: the same output from either server.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { reading } from '#local-cluster/conformance/topics/kubectl/reading.ts';
import { applying } from '#local-cluster/conformance/topics/kubectl/applying.ts';
import { changing } from '#local-cluster/conformance/topics/kubectl/changing.ts';
import { asking } from '#local-cluster/conformance/topics/kubectl/asking.ts';

export const kubectl: Topic = {
  topic: 'kubectl',
  cases: { ...reading, ...applying, ...changing, ...asking },
};
