// Reads several items concurrently and yields them in order.

/** Concurrent reads. */
const ahead = 4;

/** `take` receives results in the order of `items`. Throws the error of the first failing `read` or `take`. */
export const inOrder = async <T, R>(
  items: readonly T[],
  read: (item: T) => Promise<R>,
  take: (item: T, result: R) => void,
): Promise<void> => {
  const pending: Promise<R>[] = [];
  const begin = (item: T): void => {
    const reading = read(item);
    // Awaited later; until then a failure must not count as an unhandled rejection.
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
