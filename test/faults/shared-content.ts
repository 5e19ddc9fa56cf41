// Volumes that request the same bytes, under faults: in whatever order they are created and whatever fails meanwhile, the bytes are fetched once. Called
// by shared-content.test.ts and by main.ts.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { runScenario } from '#test/faults/image-import.ts';
import type { Scenario } from '#test/faults/scenarios.ts';

/** The source that a Job reads. */
const sourceOf = ({ spec }: Job): string => {
  const { env = [] } = spec.template.spec.containers[0] ?? {};
  const text = env.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '{}';
  return (JSON.parse(text) as { readonly source?: { readonly type: string } }).source?.type ?? '';
};

/** The sources that only the volume which fetches for all of them may use. */
const sharedFrom = ({ name }: Scenario): string => (name.startsWith('shared-file') ? 'http' : 'registry');

interface Fetched extends KubeObject {
  readonly status?: { readonly fetchReason?: string; readonly detail?: { readonly fetchReason?: string } };
}

/** Volumes that fetched what others had, and reported why. */
const hasReason = ({ status }: Fetched): boolean => (status?.detail?.fetchReason ?? status?.fetchReason) !== undefined;

/** Violated guarantees; empty if there are none. */
export const runSharedContent = async (scenario: Scenario, seed: number): Promise<readonly string[]> => {
  const { world, violations } = await runScenario(scenario, seed);
  const disks = world.kube.all(dataVolumeKind.type);
  const open = disks.filter(({ status }) => status?.phase !== 'Succeeded').map(({ metadata }) => metadata.name);
  const fetched = world.kube.all(jobs).filter(({ metadata }) => metadata.name.startsWith('import-'));
  const fetches = fetched.filter((job) => sourceOf(job) === sharedFrom(scenario)).length;
  const owners: readonly Fetched[] = [...disks, ...world.kube.all(scenario.type)];
  // The disk of a machine whose class has no snapshots can be retained only as a copy: a late volume fetches.
  const most = scenario.withoutSnapshots === true ? 1 + owners.filter(hasReason).length : 1;
  return [
    ...violations,
    ...open.map((name) => `${name} was not filled`),
    ...(fetches === most ? [] : [`fetched ${fetches} times, where ${most} would do`]),
  ];
};
