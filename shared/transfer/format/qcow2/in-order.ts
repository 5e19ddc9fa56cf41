// Reads several things at once and hands them on one after the other.

/** Reads in flight. */
const ahead = 4;

/** `take` sees results in the order of `items`. Throws what the first failing `read` or `take` throws. */
export const inOrder = async <T, R>(
  items: readonly T[],
  read: (item: T) => Promise<R>,
  take: (item: T, result: R) => void,
): Promise<void> => {
  const pending: Promise<R>[] = [];
  const begin = (item: T): void => {
    const reading = read(item);
    // Waited for later; until then a failure is no unhandled one.
    reading.catch(() => {});
    pending.push(reading);
  };
  for (const item of items.slice(0, ahead)) begin(item);
  for (const [index, item] of items.entries()) {
    const result = await pending[index];
    const following = items[index + ahead];
    if (following !== undefined) begin(following);
    take(item, result as R);
  }
};
