import { describeConformance } from '#local-cluster/conformance/suite/vitest.ts';

describeConformance('real');
