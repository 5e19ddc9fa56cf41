import { expect, it } from 'vitest';
import { isObjectName } from '#shared/exchange/target-name.ts';

it.each([
  ['ubuntu22.04', true],
  ['a', true],
  ['x'.repeat(253), true],
  ['x'.repeat(254), false],
  ['', false],
  ['.', false],
  ['..', false],
  ['../kube-system/x', false],
  ['a/b', false],
  ['%2e', false],
  ['A', false],
  ['日本', false],
  ['a\u0000', false],
])('%j as name of an object is valid: %s', (text, isName) => expect(isObjectName(text)).toBe(isName));
