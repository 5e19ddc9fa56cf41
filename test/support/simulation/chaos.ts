// Failures of a simulated world, and their frequency.
import { errorOfStatus } from '#shared/clients/kube/wire.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import type { KubeFault } from '#test/support/memory-kube.ts';
import type { Random } from '#test/support/random.ts';

/** Probabilities, each for one event, one call or one step of time. */
export interface Chaos {
  readonly drop: number;
  readonly repeat: number;
  readonly delay: number;
  /** The API answers 409, 429, 500, 503 or 504, or not at all, before or after the effect. */
  readonly apiFault: number;
  readonly death: number;
  /** The clock jumps by up to ten minutes, forward. */
  readonly clockJump: number;
  readonly interleave: number;
  /** Watches are interrupted, and cannot be opened again for up to 40 s. */
  readonly watchCut: number;
  /** The versions for resuming watches are gone after an interruption (410), and with them all changes meanwhile. */
  readonly watchExpiry: number;
  /** Admission is unavailable for up to two minutes; ten times as likely at the beginning, when users create most objects. */
  readonly webhookDown: number;
}

export const calm: Chaos = {
  drop: 0,
  repeat: 0,
  delay: 0,
  apiFault: 0,
  death: 0,
  clockJump: 0,
  interleave: 0,
  watchCut: 0,
  watchExpiry: 0,
  webhookDown: 0,
};

export const storm: Chaos = {
  drop: 0.2,
  repeat: 0.2,
  delay: 0.3,
  apiFault: 0.06,
  death: 0.03,
  clockJump: 0.002,
  interleave: 0.4,
  watchCut: 0.02,
  watchExpiry: 0.5,
  webhookDown: 0.02,
};

/** The current storm, and what it affects. */
export interface Weather {
  readonly random: Random;
  readonly isStormy: () => boolean;
  readonly strikes: (kind: keyof Chaos) => boolean;
}

interface ApiFault {
  /** HTTP status. Default: the connection failed, or no answer arrived in time. */
  readonly code?: number;
  readonly message: string;
  /** Seconds, chosen up to this. */
  readonly retryAfterBelow?: number;
  /** Whether it can happen after the effect. */
  readonly mayHaveEffect?: boolean;
  readonly onlyWrites?: boolean;
}

const apiFaults: readonly ApiFault[] = [
  { code: 409, message: 'the object has been modified', onlyWrites: true },
  { code: 429, message: 'too many requests, please try again later', retryAfterBelow: 90 },
  { code: 500, message: 'etcdserver: request timed out', mayHaveEffect: true },
  { code: 500, message: 'Internal error occurred: etcdserver: leader changed' },
  { code: 503, message: 'the server is currently unable to handle the request' },
  { code: 504, message: 'the server was unable to return a response in the time allotted', mayHaveEffect: true },
  { message: 'socket hang up', mayHaveEffect: true },
];

const writes = /^(create|replace|mergePatch|delete) /;

/** One of the API's faults, as the product's client reports it. `call` starts with its verb. */
export const drawApiFault = (random: Random, call: string): KubeFault => {
  const isWrite = writes.test(call);
  const fault = random.pick(apiFaults.filter(({ onlyWrites }) => isWrite || onlyWrites !== true));
  const { code, message, retryAfterBelow } = fault;
  const options = retryAfterBelow === undefined ? {} : { retryAfterSeconds: 1 + random.below(retryAfterBelow) };
  const error = code === undefined ? new Unavailable(message) : errorOfStatus(code, { message }, call, options);
  return { error, when: fault.mayHaveEffect === true && random.chance(0.5) ? 'after' : 'before' };
};
