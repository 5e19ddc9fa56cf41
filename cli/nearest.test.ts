import { expect, it } from 'vitest';
import { didYouMean } from '#cli/nearest.ts';

const words = ['import', 'images', 'why', 'get', 'queue', '--namespace', 'ChecksumMismatch'];

it.each([
  ['imprt', 'import'],
  ['improt', 'import'],
  ['image', 'images'],
  ['wy', 'why'],
  ['hwy', 'why'],
  ['--namspace', '--namespace'],
  ['checksummissmatch', 'ChecksumMismatch'],
])('%s: did you mean %s?', (word, meant) => {
  expect(didYouMean(word, words)).toBe(`; did you mean ${meant}?`);
});

it.each(['apply', 'x', '', '--all', 'delete'])('nothing is near to "%s"', (word) => {
  expect(didYouMean(word, words)).toBe('');
});

it('nothing is near where nothing is known', () => {
  expect(didYouMean('import', [])).toBe('');
});
