// What an installation costs while nothing happens: pods, memory and processor time, as the kubelet counts them. Figures are printed.
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { nodeName } from '#local-cluster/node/layout.ts';
import { kube } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const minutes = 3;
const namespaces: readonly string[] = ['bullion-system', 'knative-serving', 'knative-eventing'];

interface PodUsage {
  readonly podRef: { readonly name: string; readonly namespace: string };
  readonly cpu?: { readonly usageCoreNanoSeconds?: number };
  readonly memory?: { readonly workingSetBytes?: number };
}

const usage = async (): Promise<ReadonlyMap<string, PodUsage>> => {
  const path = `/api/v1/nodes/${nodeName}/proxy/stats/summary`;
  const { pods } = await kube.raw<{ readonly pods: readonly PodUsage[] }>({ method: 'GET', path });
  return new Map(
    pods
      .filter(({ podRef }) => namespaces.includes(podRef.namespace))
      .map((pod) => [`${pod.podRef.namespace}/${pod.podRef.name}`, pod]),
  );
};

interface Seen {
  /** Nanoseconds. */
  readonly first: number;
  readonly last: number;
  /** At most. */
  readonly bytes: number;
}

/** Of each pod as long as it is there; one that comes later began with nothing. */
const watchUsage = async (milliseconds: number): Promise<ReadonlyMap<string, Seen>> => {
  const seen = new Map<string, Seen>();
  const until = Date.now() + milliseconds;
  for (let isFirst = true; isFirst || Date.now() < until; isFirst = false) {
    for (const [name, { cpu, memory }] of await usage()) {
      const last = cpu?.usageCoreNanoSeconds ?? 0;
      const { first, bytes } = seen.get(name) ?? { first: isFirst ? last : 0, bytes: 0 };
      seen.set(name, { first, last, bytes: Math.max(bytes, memory?.workingSetBytes ?? 0) });
    }
    await sleep(10_000);
  }
  return seen;
};

it('an installation at rest', { timeout: 900_000 }, async () => {
  const seen = await watchUsage(minutes * 60_000);
  for (const [name, { first, last, bytes }] of [...seen].toSorted(([one], [other]) => one.localeCompare(other)))
    console.log(
      `at rest: ${name}: ${Math.round(bytes / mib)} MiB, ${Math.round((last - first) / 1e6 / minutes)} ms of processor time a minute`,
    );
  console.log(`load of the machine: ${loadavg().map(Math.round).join(', ')}`);
  expect(seen.size).toBeGreaterThan(0);
});
