import { describe, expect, test } from 'vitest';
import { parseLabelSelector, toLabelMatcher } from './label.ts';

const labels = { app: 'web', tier: 'front', 'example.com/x': '', n: '5' };

describe('parseLabelSelector', () => {
  test.each([
    ['', true],
    ['app=web', true],
    ['app==web,tier=front', true],
    ['app=other', false],
    ['app!=other', true],
    ['none!=x', true],
    ['app in (web, api)', true],
    ['app notin (web)', false],
    ['none notin (x)', true],
    ['app', true],
    ['!none', true],
    ['!app', false],
    ['example.com/x=', true],
    ['n>4', true],
    ['n<5', false],
  ])('%j', (selector, matches) => {
    expect(parseLabelSelector(selector)(labels)).toBe(matches);
  });

  test.each(['app in web', 'a b', '=x', 'UPPER./x'])('%j is rejected', (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow('unable to parse requirement');
  });

  test('an inherited property is not a label', () => {
    expect(parseLabelSelector('constructor')({})).toBe(false);
  });
});

describe('toLabelMatcher', () => {
  test.each([
    [undefined, true],
    [{}, true],
    [{ matchLabels: { app: 'web' } }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['api'] }] }, false],
    [{ matchExpressions: [{ key: 'none', operator: 'DoesNotExist' }] }, true],
    [{ matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['front'] }] }, false],
  ])('%j', (selector, matches) => {
    expect(toLabelMatcher(selector)(labels)).toBe(matches);
  });
});
