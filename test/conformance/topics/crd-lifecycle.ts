// Custom resource definitions: how they come, change and go.
import type { Topic } from '#test/conformance/suite/case.ts';
import { definitions } from '#test/conformance/topics/crd-lifecycle/definitions.ts';
import { versions } from '#test/conformance/topics/crd-lifecycle/versions.ts';

export const crdLifecycle: Topic = {
  topic: 'crd-lifecycle',
  cases: { ...definitions, ...versions },
};
