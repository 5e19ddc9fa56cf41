// How many transfers run at once: what an operator sets in the ConfigMap `transfer-queue`. Default: no limits, and no queue.
import { configMaps } from '#shared/api/foreign/core.ts';
import { systemNamespace, transferQueue } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

export interface QueueLimits {
  /** In the whole cluster. Default: no limit; likewise the others. */
  readonly running?: number | undefined;
  readonly runningPerNamespace?: number | undefined;
  readonly runningPerHost?: number | undefined;
  /** Share of each namespace. Default: 1. */
  readonly weights: ReadonlyMap<string, number>;
}

export interface ReadLimits {
  readonly limits: QueueLimits;
  /** Entries that cannot be used, each with what to do. They count as not set: a limit that cannot be read must not stop everything. */
  readonly faults: readonly string[];
}

const numbers = ['running', 'runningPerNamespace', 'runningPerHost'] as const;
const known: readonly string[] = [...numbers, 'weights'];

const isCount = (text: string): boolean => /^[1-9]\d{0,5}$/.test(text);

const numberOf = (key: string, text: string | undefined): { readonly value?: number; readonly faults: string[] } => {
  if (text === undefined) return { faults: [] };
  return isCount(text.trim())
    ? { value: Number(text), faults: [] }
    : { faults: [`${key} is "${text}": write a whole number from 1 on, or remove it for no limit`] };
};

/** `team-a=3, team-b=2`, separated by commas or line breaks. */
const weightsOf = (text: string) => {
  const weights = new Map<string, number>();
  const faults: string[] = [];
  for (const entry of text.split(/[\s,]+/).filter((part) => part !== '')) {
    const [namespace = '', weight = ''] = entry.split('=');
    if (namespace !== '' && isCount(weight)) weights.set(namespace, Number(weight));
    else faults.push(`weights has "${entry}": write <namespace>=<whole number from 1 on>`);
  }
  return { weights, faults };
};

/** `data` of the ConfigMap. */
export const parseLimits = (data: Readonly<Record<string, string>>): ReadLimits => {
  const { weights, faults } = weightsOf(data['weights'] ?? '');
  const parsed = numbers.map((key) => ({ key, ...numberOf(key, data[key]) }));
  const unknown = Object.keys(data).filter((key) => !known.includes(key));
  return {
    limits: { ...Object.fromEntries(parsed.map(({ key, value }) => [key, value])), weights },
    faults: [
      ...parsed.flatMap((one) => one.faults),
      ...faults,
      ...unknown.map((key) => `${key} is not known: write ${known.join(', ')}`),
    ],
  };
};

/** `undefined`: there is no ConfigMap, and every transfer starts at once. */
export const readLimits = async (kube: KubeClient): Promise<ReadLimits | undefined> => {
  const found = await kube.get(configMaps, { namespace: systemNamespace, name: transferQueue });
  return found && parseLimits(found.data ?? {});
};
