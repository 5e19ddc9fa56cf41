// Volumes that want the same bytes, under a storm: in whatever order they come and whatever is lost on the way, the bytes are fetched once.
import { describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import { runScenario } from '#test/faults/image-import.ts';
import { type Scenario, sharedContent } from '#test/faults/scenarios.ts';

const seeds = Number(process.env['FAULT_SEEDS'] ?? 4);

/** What a Job reads from. */
const sourceOf = ({ spec }: Job): string => {
  const { env = [] } = spec.template.spec.containers[0] ?? {};
  const text = env.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '{}';
  return (JSON.parse(text) as { readonly source?: { readonly type: string } }).source?.type ?? '';
};

/** What none of the volumes of a scenario is fetched from but by the one that fetches for all. */
const sharedFrom = ({ name }: Scenario): string => (name === 'shared-file' ? 'http' : 'registry');

describe.each(sharedContent)('$name', (scenario) => {
  it('fetches once, and fills all of them', async () => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { world, violations } = await runScenario(scenario, seed);
      const phases = world.kube.all(dataVolumeKind.type).map(({ status }) => status?.phase);
      const fetched = world.kube.all(jobs).filter(({ metadata }) => metadata.name.startsWith('import-'));
      const fetches = fetched.filter((job) => sourceOf(job) === sharedFrom(scenario)).length;
      expect({ seed, violations, phases, fetches }).toEqual({
        seed,
        violations: [],
        phases: ['Succeeded', 'Succeeded', 'Succeeded'],
        fetches: 1,
      });
    }
  });
});
