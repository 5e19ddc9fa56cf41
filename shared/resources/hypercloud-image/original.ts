// What the original operator left: its objects have a summary, and nothing of what Bullion records. Pure.
import type { Filled } from '#shared/populate/filled.ts';

interface Summary {
  readonly phase?: string | undefined;
  readonly state?: string | undefined;
}

const isOriginal = ({ phase, state = '' }: Summary): boolean =>
  phase === undefined && ['Available', 'Completed'].includes(state);

/** What the original had not finished begins again. */
export const phaseOf = (status: Summary = {}): string | undefined => (isOriginal(status) ? 'Available' : status.phase);

export const readOriginal = (status: Summary = {}): Pick<Filled, 'comesFromOriginal'> => ({
  comesFromOriginal: isOriginal(status),
});
