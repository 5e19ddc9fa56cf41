// Keeps the list of updating managers short: beyond ten, the oldest of each version are merged into one.

import { unionOf } from './field-set.ts';
import { managerId, type Manager, type Managers } from './managers.ts';

const maxUpdaters = 10;
const bucketName = 'ancient-changes';

const age = (manager: Manager): number => (manager.time === undefined ? 0 : Date.parse(manager.time));

/** Merges the oldest updaters of one version, two at first, then one more at a time, until ten are left. */
export const capUpdaters = (managers: Managers): Managers => {
  const updaters = [...managers].filter(([, manager]) => manager.operation === 'Update');
  let surplus = updaters.length - maxUpdaters;
  if (surplus <= 0) return managers;
  const capped = new Map(managers);
  const firstOf = new Map<string, string>();
  for (const [id, manager] of updaters.toSorted(([, a], [, b]) => age(a) - age(b) || (a.name < b.name ? -1 : 1))) {
    if (surplus <= 0) break;
    const { apiVersion } = manager;
    const first = firstOf.get(apiVersion);
    if (first === undefined) {
      firstOf.set(apiVersion, id);
      continue;
    }
    const bucket = { name: bucketName, operation: 'Update', apiVersion, subresource: '' } as const;
    const bucketId = managerId(bucket);
    const held = capped.get(bucketId) ?? capped.get(first);
    capped.delete(first);
    capped.delete(id);
    capped.set(bucketId, {
      ...bucket,
      fields: held === undefined ? manager.fields : unionOf(held.fields, manager.fields),
      time: manager.time,
    });
    surplus -= 1;
  }
  return capped;
};
