// Whose the kinds of cdi.kubevirt.io are: told by a setting, or by whether a CDI is installed. Made once at the edge, asked by admission and the driver.
import { cdis } from '#shared/api/foreign/cdi.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { CdiSetting } from '#shared/runtime/config.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** Ours, or those of a CDI that is installed. */
export type CdiMode = 'serve' | 'use';

/** Throws Unavailable when the API is: nobody may take a CDI for absent because it could not be observed. */
export type CdiLook = () => Promise<CdiMode>;

/** Milliseconds that an answer counts, so that neither a CDI that comes nor one that goes is overlooked for longer. */
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

/** Its definition alone says nothing: it stays behind when a CDI is removed, and comes with operators that have none to run. */
const hasCdi = async (kube: KubeClient): Promise<boolean> => {
  try {
    return (await kube.list(cdis, { limit: 1 })).items.length > 0;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
};
