// Decides who serves the kinds of cdi.kubevirt.io: by a setting, or by whether a CDI is installed. Created once, called by admission and the
// reconciler.
import { cdis } from '#shared/api/foreign/boot-sources.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';
import { cached } from '#shared/runtime/cached.ts';
import type { CdiSetting } from '#shared/runtime/config.ts';

/** Served by Bullion, or by an installed CDI. */
export type CdiMode = 'serve' | 'use';

/** Throws Unavailable if the API is: a CDI must not be assumed absent because of a failed request. */
export type CdiLook = () => Promise<CdiMode>;

/** Milliseconds for which the result is cached: the installation or removal of a CDI is detected within this time. */
const lastsMs = 60_000;

export const createCdiLook = (kube: KubeClient, setting: CdiSetting, now: () => number = Date.now): CdiLook => {
  if (setting !== 'auto') return () => Promise.resolve(setting);
  return cached(async () => ((await hasCdi(kube)) ? 'use' : 'serve'), lastsMs, now);
};

/** Its CRD alone proves nothing: it remains when a CDI is removed, and operators install it without a CDI. */
const hasCdi = async (kube: KubeClient): Promise<boolean> => (await listIfServed(kube, cdis, { limit: 1 })).length > 0;
