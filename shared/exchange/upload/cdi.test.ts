import { expect, it } from 'vitest';
import { Problem } from '#shared/exchange/http/problem.ts';
import { answerOf } from '#shared/exchange/upload/cdi.ts';
import type { Sent } from '#shared/exchange/upload/session.ts';

const aSent = (sent: Partial<Sent>): Sent => ({
  status: 200,
  offset: 0,
  length: undefined,
  isComplete: false,
  announced: undefined,
  reason: '',
  message: '',
  ...sent,
});

const statusOf = (sent: Sent): number => {
  try {
    return answerOf(sent, { name: 'disk' }).status;
  } catch (error) {
    if (error instanceof Problem) return error.status;
    throw error;
  }
};

it.each<[what: string, sent: Partial<Sent>, status: number]>([
  ['a disk that is written', { status: 200 }, 200],
  ['a file that has arrived', { status: 202 }, 200],
  ['a Job that was ended, another takes its place', { status: 503, reason: 'Cancelled' }, 503],
  ['another client at it', { status: 423 }, 503],
  ['a file that is there', { status: 409 }, 409],
  ['a disk larger than the volume', { status: 422, reason: 'ImageTooLarge' }, 400],
  ['a volume that is full, for now', { status: 503, reason: 'TargetFull' }, 400],
  ['a file that is not an image', { status: 422, reason: 'InvalidImage' }, 500],
])('%s', (_what, sent, status) => {
  expect(statusOf(aSent(sent))).toBe(status);
});
