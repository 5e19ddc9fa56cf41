// Reads settings of an administrator in the CDIConfig of the cluster, for plans and polls. Created once, called before something is planned.
import { type CdiConfig, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { registriesConfig, systemNamespace } from '#shared/api/names.ts';
import { type RegistryAccess, readRegistriesConf } from '#shared/clients/registry/mirrors.ts';
import { isShare } from '#shared/populate/storage/profile.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { isNotFound, messageOf } from '#shared/runtime/errors.ts';

type Spec = CdiConfig['spec'] & Pick<RegistryAccess, 'registryRules' | 'registryFault'>;

/** Its spec, and the rules of registries.conf; empty if there are none. Throws Unavailable if the API is. */
export type ConfigLook = () => Promise<Spec>;

/** Milliseconds for which the result is cached. */
const lastsMs = 60_000;

export const createConfigLook = (kube: KubeClient, now: () => number = Date.now): ConfigLook => {
  let known: { readonly spec: Spec; readonly until: number } | undefined;
  return async () => {
    if (known === undefined || now() >= known.until) {
      const [spec, registries] = await Promise.all([readSpec(kube), readRegistries(kube)]);
      known = { spec: { ...spec, ...registries }, until: now() + lastsMs };
    }
    return known.spec;
  };
};

const readSpec = async (kube: KubeClient): Promise<CdiConfig['spec']> => {
  try {
    return (await kube.get(cdiConfigs, { name: cdiConfigName }))?.spec ?? {};
  } catch (error) {
    // The kind does not exist before its CRD.
    if (isNotFound(error)) return {};
    throw error;
  }
};

/** The ConfigMap `registries`, which an administrator creates. */
export const readRegistries = async (
  kube: KubeClient,
): Promise<Pick<RegistryAccess, 'registryRules' | 'registryFault'>> => {
  const found = await kube.get(configMaps, { namespace: systemNamespace, name: registriesConfig.name });
  const text = found?.data?.[registriesConfig.key];
  if (text === undefined) return {};
  try {
    const { parse } = await import('smol-toml');
    return { registryRules: readRegistriesConf(parse(text)) };
  } catch (error) {
    const where = `${registriesConfig.key} of ConfigMap ${systemNamespace}/${registriesConfig.name}`;
    return { registryFault: `${where} is not valid: ${messageOf(error)}` };
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
  const { registryRules, registryFault } = spec;
  return {
    ...settings,
    registryRules,
    registryFault,
    filesystemOverhead: isShare(global) ? Number(global) : settings.filesystemOverhead,
    classOverheads: { ...settings.classOverheads, ...sharesOf(storageClass) },
    plainRegistries: [...settings.plainRegistries, ...insecureRegistries],
  };
};
