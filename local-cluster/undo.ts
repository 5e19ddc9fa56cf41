// Stops what was started, in reverse order.

/** Pending undo steps, newest first. */
export interface Undo {
  readonly add: (step: () => Promise<unknown>) => void;
  readonly all: () => Promise<void>;
}

export const createUndo = (): Undo => {
  const steps: (() => Promise<unknown>)[] = [];
  return {
    add: (step) => steps.push(step),
    all: async () => {
      for (const step of steps.splice(0).toReversed()) await step();
    },
  };
};
