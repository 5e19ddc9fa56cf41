// Certificate authorities that transfers trust besides the default ones: Harvester's setting `additional-ca`. Created once, called by the
// reconciler before something is fetched.
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { mostPemCharacters } from '#shared/resources/proxy-settings.ts';
import { InvalidInput, isNotFound } from '#shared/runtime/errors.ts';

/** PEM certificates; `undefined`: there are none. Throws Unavailable if the API is, InvalidInput if they do not fit into a Job. */
export type TrustLook = () => Promise<string | undefined>;

export const trustSetting = 'additional-ca';

/** Milliseconds for which the result is cached. */
const lastsMs = 60_000;

export const createTrustLook = (kube: KubeClient, now: () => number = Date.now): TrustLook => {
  let known: { readonly pem: string | undefined; readonly until: number } | undefined;
  return async () => {
    if (known === undefined || now() >= known.until) known = { pem: await readPem(kube), until: now() + lastsMs };
    const { pem } = known;
    if (pem !== undefined && pem.length > mostPemCharacters)
      throw new InvalidInput(
        `Harvester's setting ${trustSetting} is too long for a Job: include only your own authorities`,
      );
    return pem;
  };
};

const readPem = async (kube: KubeClient): Promise<string | undefined> => {
  try {
    const setting = await kube.get(harvesterSettings, { name: trustSetting });
    return setting?.value || setting?.default || undefined;
  } catch (error) {
    // The kind does not exist without Harvester.
    if (isNotFound(error)) return undefined;
    throw error;
  }
};

interface Trusting {
  readonly settings: PopulateSettings;
  readonly trust: TrustLook;
}

/** Read only if something may be fetched. */
export const trustedSettings = async (
  { settings, trust }: Trusting,
  isFetching: boolean | undefined,
): Promise<PopulateSettings> => (isFetching === true ? trusting(settings, await trust()) : settings);

/** The settings of Jobs. */
export const trusting = (settings: PopulateSettings, pem: string | undefined): PopulateSettings => {
  if (pem === undefined) return settings;
  const { proxies = { none: [] } } = settings;
  const ca = [proxies.ca, pem].filter((one) => one !== undefined).join('\n');
  return { ...settings, additionalCa: pem, proxies: { ...proxies, ca } };
};
