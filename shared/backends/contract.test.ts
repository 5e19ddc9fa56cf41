// Every backend of the registry keeps the contract; and a fourth takes its folder and one line.
import { describeBackend } from '#shared/backends/contract.ts';
import { describeCopies } from '#test/support/backends/copies.ts';
import { describeDeleting } from '#test/support/backends/deleting.ts';
import { describeKeeping } from '#test/support/backends/keeping.ts';
import { describeLife } from '#test/support/backends/life.ts';
import { type BackendRegistry, type Registration, backends } from '#shared/backends/registry.ts';
import { anImage } from '#test/support/builders.ts';
import { memory } from '#test/support/backends/memory/index.ts';

for (const [name, registration] of Object.entries<Registration>(backends)) {
  if (!registration.served) continue;
  describeBackend(name, registration.backend);
  const probe = registration.backend.rootDiskOf(anImage({ state: { storageClassName: 'lh-1' } }));
  const makesDataVolumes = registration.backend.watchedChildren.some(({ type }) => type.kind === 'DataVolume');
  describeLife(name, backends, { disksShareIt: probe.is === 'class', makesDataVolumes });
  describeKeeping(name, { makesDataVolumes });
  describeCopies(name, backends);
  describeDeleting(name);
}

/** The one line. */
const four: BackendRegistry = { ...backends, memory: { served: true, backend: memory } };
describeBackend('memory', memory);
describeLife('memory', four, { fails: false });
