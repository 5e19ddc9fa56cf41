// Reads settings of an administrator in the CDIConfig of the cluster, for plans and polls. Created once, called before something is planned.
import { type MirrorAccess, readMirrors } from '#shared/clients/http/mirrors.ts';
import { type CdiConfig, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { registriesConfig, systemNamespace } from '#shared/api/names.ts';
import { type RegistryAccess, readRegistriesConf } from '#shared/clients/registry/mirrors.ts';
import { cached } from '#shared/runtime/cached.ts';
import { isShare } from '#shared/populate/storage/profile.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { messageOf } from '#shared/runtime/errors.ts';

type Mirrors = Pick<RegistryAccess, 'registryRules' | 'registryFault'> & MirrorAccess;
type Spec = CdiConfig['spec'] & Mirrors;

/** Its spec, and the mirrors of registries and of files; empty if there are none. Throws Unavailable if the API is. */
export type ConfigLook = () => Promise<Spec>;

/** Milliseconds for which the result is cached. */
const lastsMs = 60_000;

export const createConfigLook = (kube: KubeClient, now: () => number = Date.now): ConfigLook =>
  cached(() => readSpec(kube), lastsMs, now);

const readSpec = async (kube: KubeClient): Promise<Spec> => {
  const [config, registries] = await Promise.all([kube.get(cdiConfigs, { name: cdiConfigName }), readRegistries(kube)]);
  return { ...config?.spec, ...registries };
};

/** The ConfigMap `registries`, which an administrator creates. */
export const readRegistries = async (kube: KubeClient): Promise<Mirrors> => {
  const { name, key, filesKey } = registriesConfig;
  const data = (await kube.get(configMaps, { namespace: systemNamespace, name }))?.data ?? {};
  const registries = await readToml(data, key, readRegistriesConf);
  const files = await readToml(data, filesKey, readMirrors);
  return {
    ...(registries === undefined
      ? {}
      : 'value' in registries
        ? { registryRules: registries.value }
        : { registryFault: registries.fault }),
    ...(files === undefined ? {} : 'value' in files ? { mirrors: files.value } : { mirrorFault: files.fault }),
  };
};

type Parsed<T> = { readonly value: T } | { readonly fault: string } | undefined;

const readToml = async <T>(
  data: Readonly<Record<string, string>>,
  key: string,
  read: (tables: object) => T,
): Promise<Parsed<T>> => {
  const text = data[key];
  if (text === undefined) return undefined;
  try {
    const { parse } = await import('smol-toml');
    return { value: read(parse(text)) };
  } catch (error) {
    const where = `${key} of ConfigMap ${systemNamespace}/${registriesConfig.name}`;
    return { fault: `${where} is not valid: ${messageOf(error)}` };
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
  const { registryRules, registryFault, mirrors, mirrorFault } = spec;
  return {
    ...settings,
    registryRules,
    registryFault,
    mirrors,
    mirrorFault,
    filesystemOverhead: isShare(global) ? Number(global) : settings.filesystemOverhead,
    classOverheads: { ...settings.classOverheads, ...sharesOf(storageClass) },
    plainRegistries: [...settings.plainRegistries, ...insecureRegistries],
  };
};
