import { expect, test } from 'vitest';
import { freePorts } from './free-ports.ts';

test('no port is chosen twice before it is used', async () => {
  const chosen = await Promise.all(Array.from({ length: 30 }, () => freePorts(4)));
  expect(new Set(chosen.flat()).size).toBe(120);
});
