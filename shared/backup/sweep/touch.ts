// A disk that loses a name stays as long as one that is new: somebody may be restoring it, or may have trusted in that name.
import { dataPrefix } from '#shared/backup/place.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { indexKey, mostTableBytes } from '#shared/transfer/chunks/chunk-index.ts';

/** What a sweep spares is told by the time of its table. */
export const keepForAWhile = async (store: Store, disk: string): Promise<void> => {
  const key = indexKey(dataPrefix, disk);
  const table = await store.read(key, mostTableBytes);
  if (table !== undefined) await store.write(key, table.bytes);
};
