import { describeConformance } from '#test/conformance/suite/vitest.ts';

describeConformance('real');
