// Custom resource definitions: how they come, change and go.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { definitions } from '#local-cluster/conformance/topics/crd-lifecycle/definitions.ts';
import { versions } from '#local-cluster/conformance/topics/crd-lifecycle/versions.ts';

export const crdLifecycle: Topic = {
  topic: 'crd-lifecycle',
  cases: { ...definitions, ...versions },
};
