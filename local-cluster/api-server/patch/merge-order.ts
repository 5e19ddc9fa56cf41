// The order of a list after an apply. Called by typed-merge.ts.

/** Where the walk over both lists stands. Changed as it goes; never leaves this file. */
interface Walk {
  readonly stored: readonly string[];
  readonly applied: readonly string[];
  readonly isApplied: ReadonlySet<string>;
  /** Items of both lists in applied order, the next one first. */
  readonly shared: string[];
  readonly done: Set<string>;
  readonly merged: string[];
  left: number;
  right: number;
}

const takeApplied = (walk: Walk): void => {
  const step = walk.applied[walk.right++];
  if (step === undefined) return;
  walk.merged.push(step);
  walk.done.add(step);
  if (walk.shared[0] === step) walk.shared.shift();
};

/** A stored item that is applied too, but not next: its place is decided by the applied list. */
const isOutOfTurn = (walk: Walk, step: string): boolean =>
  walk.right < walk.applied.length &&
  walk.isApplied.has(step) &&
  walk.shared[0] !== undefined &&
  walk.shared[0] !== step;

const advance = (walk: Walk): void => {
  const step = walk.stored[walk.left];
  if (step === undefined) takeApplied(walk);
  else if (step === walk.applied[walk.right]) {
    takeApplied(walk);
    walk.left += 1;
  } else if (isOutOfTurn(walk, step)) walk.left += 1;
  else if (!walk.isApplied.has(step)) {
    walk.merged.push(step);
    walk.left += 1;
  } else {
    if (walk.done.has(step)) walk.left += 1;
    takeApplied(walk);
  }
};

/** One pass over two lists: what is only stored stays where it was, what is applied comes in its own order. */
export const mergeOrders = (stored: readonly string[], applied: readonly string[]): readonly string[] => {
  const isStored = new Set(stored);
  const walk: Walk = {
    stored,
    applied,
    isApplied: new Set(applied),
    shared: applied.filter((step) => isStored.has(step)),
    done: new Set(),
    merged: [],
    left: 0,
    right: 0,
  };
  while (walk.left < stored.length || walk.right < applied.length) advance(walk);
  return walk.merged;
};
