// Lets a watch sleep until there may be something to send.

export interface Waiter {
  /** Resolves at the next wake-up, or at once if there was one since the last wait. */
  readonly wait: () => Promise<void>;
  readonly wake: () => void;
  /** Wakes the watch to send a bookmark. */
  readonly bookmarkDue: () => void;
  /** Whether a bookmark is due; the call resets it. */
  readonly takeBookmark: () => boolean;
}

export const createWaiter = (): Waiter => {
  let resolve: (() => void) | undefined;
  let isAwake = false;
  let isDue = false;
  const wake = (): void => {
    if (resolve === undefined) isAwake = true;
    resolve?.();
    resolve = undefined;
  };
  return {
    wait: () => {
      if (isAwake) {
        isAwake = false;
        return Promise.resolve();
      }
      return new Promise((done) => {
        resolve = done;
      });
    },
    wake,
    bookmarkDue: () => {
      isDue = true;
      wake();
    },
    takeBookmark: () => {
      const due = isDue;
      isDue = false;
      return due;
    },
  };
};
