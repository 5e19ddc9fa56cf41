// Structural schemas: what is pruned, defaulted, and refused.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { pruning } from '#local-cluster/conformance/topics/crd-schema/pruning.ts';
import { validation } from '#local-cluster/conformance/topics/crd-schema/validation.ts';

export const crdSchema: Topic = {
  topic: 'crd-schema',
  cases: { ...pruning, ...validation },
};
