import { type Registration, backends } from '#shared/backends/registry.ts';
import { describeBackend } from '#shared/backends/contract.ts';

for (const [name, registration] of Object.entries<Registration>(backends)) {
  if (registration.served) describeBackend(name, registration.backend);
}
