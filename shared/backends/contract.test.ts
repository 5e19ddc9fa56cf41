// Every backend of the registry keeps the contract; and a fourth takes its folder and one line.
import { describeBackend } from '#shared/backends/contract.ts';
import { describeLife } from '#test/support/backends/life.ts';
import { type BackendRegistry, type Registration, backends } from '#shared/backends/registry.ts';
import { anImage } from '#test/support/builders.ts';
import { memory } from '#test/support/backends/memory/index.ts';

/** More than the 25 aimed at: a size that nobody gave is found by a Job of its own, and our own DataVolume is an object with a life, too. */
const calls: Readonly<Record<string, number>> = { csi: 31, cdi: 65 };

for (const [name, registration] of Object.entries<Registration>(backends)) {
  if (!registration.served) continue;
  describeBackend(name, registration.backend);
  const probe = registration.backend.rootDiskOf(anImage({ state: { storageClassName: 'lh-1' } }));
  describeLife(name, backends, { calls: calls[name] ?? 25, disksShareIt: probe.is === 'class' });
}

/** The one line. */
const four: BackendRegistry = { ...backends, memory: { served: true, backend: memory } };
describeBackend('memory', memory);
describeLife('memory', four, { fails: false });
