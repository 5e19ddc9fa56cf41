// Decides who serves the kinds of cdi.kubevirt.io: by a setting, or by whether a CDI is installed. Created once, called by admission and the
// reconciler.
import { cdis } from '#shared/api/foreign/boot-sources.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { CdiSetting } from '#shared/runtime/config.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** Served by Bullion, or by an installed CDI. */
export type CdiMode = 'serve' | 'use';

/** Throws Unavailable if the API is: a CDI must not be assumed absent because of a failed request. */
export type CdiLook = () => Promise<CdiMode>;

/** Milliseconds for which the result is cached: the installation or removal of a CDI is detected within this time. */
const lastsMs = 60_000;

export const createCdiLook = (kube: KubeClient, setting: CdiSetting, now: () => number = Date.now): CdiLook => {
  if (setting !== 'auto') return () => Promise.resolve(setting);
  let known: { readonly mode: CdiMode; readonly until: number } | undefined;
  return async () => {
    if (known !== undefined && now() < known.until) return known.mode;
    const mode = (await hasCdi(kube)) ? 'use' : 'serve';
    known = { mode, until: now() + lastsMs };
    return mode;
  };
};

/** Its CRD alone proves nothing: it remains when a CDI is removed, and operators install it without a CDI. */
const hasCdi = async (kube: KubeClient): Promise<boolean> => {
  try {
    return (await kube.list(cdis, { limit: 1 })).items.length > 0;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
};
