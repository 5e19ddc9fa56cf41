import { expect, it } from 'vitest';
import { isHere } from './answer.ts';

it.each([
  ['http://localhost:8080', true],
  ['http://127.0.0.1', true],
  ['https://127.9.0.1:1/up', true],
  ['http://[::1]:80', true],
  ['https://localhost.example.com', false],
  ['https://127.example.com', false],
  ['https://images.example.com', false],
])('%s is reached without a proxy: %s', (url, expected) => {
  expect(isHere(url)).toBe(expected);
});
