// kubectl as people use it: the same output from either server.
import type { Topic } from '#test/conformance/suite/case.ts';
import { reading } from '#test/conformance/topics/kubectl/reading.ts';
import { applying } from '#test/conformance/topics/kubectl/applying.ts';
import { changing } from '#test/conformance/topics/kubectl/changing.ts';
import { asking } from '#test/conformance/topics/kubectl/asking.ts';

export const kubectl: Topic = {
  topic: 'kubectl',
  cases: { ...reading, ...applying, ...changing, ...asking },
};
