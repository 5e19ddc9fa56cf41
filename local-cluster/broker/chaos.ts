// Failures between a Broker and a subscriber, enabled by tests: functions must be correct with all of them.
import type { Sleep } from '#events/sender.ts';

/** Chances are 0..1 for each event and Trigger. Fields may be changed while the broker runs. */
export interface ChaosSwitches {
  /** The event is lost silently. */
  drop: number;
  /** It is delivered twice, with the same id. */
  duplicate: number;
  /** It is delivered up to `maxDelayMs` late. */
  delay: number;
  maxDelayMs: number;
  /** The next event of the same Trigger overtakes it. */
  reorder: number;
}

export const calm = (): ChaosSwitches => ({ drop: 0, duplicate: 0, delay: 0, maxDelayMs: 1_000, reorder: 0 });

/** An event that waits to be overtaken is delivered after this time in any case. */
const overtakeMs = 200;

/** Calls `deliver` as often and as late as the switches specify. One for each Trigger. */
export const createChaos = (switches: ChaosSwitches, random: () => number, sleep: Sleep) => {
  let letGo: (() => void) | undefined;

  const overtaken = async (signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    letGo = resolve;
    await Promise.race([promise, sleep(overtakeMs, signal)]);
  };
  const once = async (deliver: () => Promise<void>, signal: AbortSignal): Promise<void> => {
    const release = letGo;
    letGo = undefined;
    if (random() < switches.delay) await sleep(random() * switches.maxDelayMs, signal);
    if (release === undefined && random() < switches.reorder) await overtaken(signal);
    await deliver();
    release?.();
  };

  return async (deliver: () => Promise<void>, signal: AbortSignal): Promise<void> => {
    if (random() < switches.drop) return;
    const copies = random() < switches.duplicate ? 2 : 1;
    await Promise.all(Array.from({ length: copies }, () => once(deliver, signal)));
  };
};
