// Reads settings of an administrator in the CDIConfig of the cluster, for plans and polls. Created once, called before something is planned.
import { type CdiConfig, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isShare } from '#shared/populate/storage/profile.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

type Spec = CdiConfig['spec'];

/** Its spec; empty if there is none. Throws Unavailable if the API is. */
export type ConfigLook = () => Promise<Spec>;

/** Milliseconds for which the result is cached. */
const lastsMs = 60_000;

export const createConfigLook = (kube: KubeClient, now: () => number = Date.now): ConfigLook => {
  let known: { readonly spec: Spec; readonly until: number } | undefined;
  return async () => {
    if (known === undefined || now() >= known.until) known = { spec: await readSpec(kube), until: now() + lastsMs };
    return known.spec;
  };
};

const readSpec = async (kube: KubeClient): Promise<Spec> => {
  try {
    return (await kube.get(cdiConfigs, { name: cdiConfigName }))?.spec ?? {};
  } catch (error) {
    // The kind does not exist before its CRD.
    if (isNotFound(error)) return {};
    throw error;
  }
};

/** Valid shares by class. */
const sharesOf = (written: Readonly<Record<string, string>>): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(written)
      .filter(([, share]) => isShare(share))
      .map(([name, share]) => [name, Number(share)]),
  );

/** Settings of the functions, overridden by the CDIConfig. */
export const configuredSettings = (settings: PopulateSettings, spec: Spec): PopulateSettings => {
  const { filesystemOverhead: { global = '', storageClass = {} } = {}, insecureRegistries = [] } = spec;
  return {
    ...settings,
    filesystemOverhead: isShare(global) ? Number(global) : settings.filesystemOverhead,
    classOverheads: { ...settings.classOverheads, ...sharesOf(storageClass) },
    plainRegistries: [...settings.plainRegistries, ...insecureRegistries],
  };
};
