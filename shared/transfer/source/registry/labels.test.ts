// Environment variables of a containerDisk that become labels, as in CDI.
import { expect, it } from 'vitest';
import { labelsOfEnvironment } from './labels.ts';

it.each([
  [
    'INSTANCETYPE_KUBEVIRT_IO_DEFAULT_INSTANCETYPE=u1.medium',
    'instancetype.kubevirt.io/default-instancetype',
    'u1.medium',
  ],
  ['INSTANCETYPE_KUBEVIRT_IO_DEFAULT_PREFERENCE=fedora', 'instancetype.kubevirt.io/default-preference', 'fedora'],
  ['KUBEVIRT_IO_TEST=x', 'kubevirt.io/test', 'x'],
  ['TEST_TEST_KUBEVIRT_IO_TEST_TEST=x', 'test.test.kubevirt.io/test-test', 'x'],
  ['KUBEVIRT_IO_EMPTY=', 'kubevirt.io/empty', ''],
])('%s is the label %s', (variable, key, value) => {
  expect(labelsOfEnvironment(['PATH=/bin', variable])).toEqual({ [key]: value });
});

it.each([
  'PATH=/bin',
  'NOTAVALIDENVVAR',
  'KUBEVIRT_IO_=x',
  'KUBEVIRT_IO_NO_VALUE',
  'KUBEVIRT_IO_TEST=a=b',
  'KUBEVIRT_IO_TEST=two words',
  `KUBEVIRT_IO_TEST=${'x'.repeat(64)}`,
  `${'X'.repeat(80)}_KUBEVIRT_IO_TEST=x`,
  'SOMETHING_ELSE_IO=x',
])('%s sets no label', (variable) => {
  expect(labelsOfEnvironment([variable])).toEqual({});
});
