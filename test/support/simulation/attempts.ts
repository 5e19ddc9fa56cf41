// Scripts of the attempts of workers in a simulation.
import type { TransferReport } from '#shared/transfer/report.ts';

/** Work of one of our Jobs; `clear` removes data of an export from the store. */
export type WorkMode = 'inspect' | 'import' | 'export' | 'clear';

/** The course of one attempt of a worker. */
export interface AttemptScript {
  readonly runMs: number;
  /** Its report; `killed`: none. */
  readonly end: TransferReport | 'killed' | 'never';
  /** The pod is never scheduled. */
  readonly unschedulable?: boolean;
}

/** `attempt` counts from 1 within a Job. */
export type Attempts = (mode: WorkMode, attempt: number) => AttemptScript;
