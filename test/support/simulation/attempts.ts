// How attempts of workers go, as a simulation is told to play them.
import type { TransferReport } from '#shared/transfer/report.ts';

/** What a Job of ours does; `clear` removes what an export left in the store. */
export type WorkMode = 'inspect' | 'import' | 'export' | 'clear';

/** How one attempt of a worker goes. */
export interface AttemptScript {
  readonly runMs: number;
  /** What it leaves behind; `killed`: nothing. */
  readonly end: TransferReport | 'killed' | 'never';
  /** The pod never gets a node. */
  readonly unschedulable?: boolean;
}

/** `attempt` counts from 1 within a Job. */
export type Attempts = (mode: WorkMode, attempt: number) => AttemptScript;
