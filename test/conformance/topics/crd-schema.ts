// Structural schemas: what is pruned, defaulted, and refused.
import type { Topic } from '#test/conformance/suite/case.ts';
import { pruning } from '#test/conformance/topics/crd-schema/pruning.ts';
import { validation } from '#test/conformance/topics/crd-schema/validation.ts';

export const crdSchema: Topic = {
  topic: 'crd-schema',
  cases: { ...pruning, ...validation },
};
