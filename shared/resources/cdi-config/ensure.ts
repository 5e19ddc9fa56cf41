// Keeps the CDIConfig of the cluster equal to our settings: checked each minute, with one listing if nothing has changed.
import { isDeepStrictEqual } from 'node:util';
import { type CdiConfig, type CdiConfigStatus, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { cdis } from '#shared/api/foreign/boot-sources.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { configuredSettings } from '#shared/resources/cdi-config/look.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { TickDeps } from '#shared/resources/deps.ts';

const blank: CdiConfig = {
  apiVersion: apiVersionOf(cdiConfigs),
  kind: cdiConfigs.kind,
  metadata: { name: cdiConfigName, labels: { 'app.kubernetes.io/managed-by': 'bullion' } },
  spec: {},
};

/** The original's format of shares: at most three decimals. */
const shareOf = (share: number): string => String(Number(share.toFixed(3)));

/** The reported status. Pure. */
export const configStatusOf = (
  { spec }: Pick<CdiConfig, 'spec'>,
  { publicUrl, settings }: { readonly publicUrl: string | undefined; readonly settings: PopulateSettings },
): CdiConfigStatus => {
  const url = spec.uploadProxyURLOverride ?? publicUrl?.replace(/\/+$/, '');
  const { scratch, transferResources } = settings;
  const { filesystemOverhead, classOverheads = {} } = configuredSettings(settings, spec);
  const shares = Object.entries(classOverheads).map(([name, share]) => [name, shareOf(share)] as const);
  return {
    ...(url === undefined ? {} : { uploadProxyURL: url }),
    filesystemOverhead: {
      global: shareOf(filesystemOverhead),
      ...(shares.length === 0 ? {} : { storageClass: Object.fromEntries(shares) }),
    },
    preallocation: false,
    ...(scratch === undefined ? {} : { scratchSpaceStorageClass: scratch.storageClassName }),
    defaultPodResourceRequirements: transferResources,
  };
};

/** One that a CDI has created is left to it, whatever the setting is. */
const isTheirs = ({ metadata }: CdiConfig): boolean =>
  metadata.ownerReferences?.some(
    ({ kind, apiVersion }) => kind === cdis.kind && apiVersion.startsWith(`${cdis.group}/`),
  ) === true;

const ensure = async ({ kube, settings, publicUrl }: TickDeps): Promise<void> => {
  const { items } = await kube.list(cdiConfigs);
  const found = items.find(({ metadata }) => metadata.name === cdiConfigName);
  if (found !== undefined && isTheirs(found)) return;
  const config = found ?? (await kube.create(cdiConfigs, blank));
  const status = configStatusOf(config, { publicUrl, settings });
  if (isDeepStrictEqual(status, config.status)) return;
  await kube.replace(cdiConfigs, { ...config, status }, { subresource: 'status' });
};

/** Not required by other work: an error is logged, and retried a minute later. An installed CDI does this itself. */
export const ensureConfig = async (deps: TickDeps): Promise<void> => {
  if ((await deps.cdi()) === 'use') return;
  try {
    await ensure(deps);
  } catch (error) {
    deps.log.warn('CDIConfig not updated', { error: messageOf(error) });
  }
};
