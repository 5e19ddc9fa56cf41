// Whom transfers trust beside the well-known authorities: Harvester's setting `additional-ca`, as its administrators know it. Made once at the edge,
// asked by the reconciler before something is fetched.
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { mostPemCharacters } from '#shared/resources/proxy-settings.ts';
import { InvalidInput, isNotFound } from '#shared/runtime/errors.ts';

/** PEM certificates; `undefined`: there are none. Throws Unavailable when the API is, InvalidInput where they fit into no Job. */
export type TrustLook = () => Promise<string | undefined>;

export const trustSetting = 'additional-ca';

/** Milliseconds that an answer counts. */
const lastsMs = 60_000;

export const createTrustLook = (kube: KubeClient, now: () => number = Date.now): TrustLook => {
  let known: { readonly pem: string | undefined; readonly until: number } | undefined;
  return async () => {
    if (known === undefined || now() >= known.until) known = { pem: await readPem(kube), until: now() + lastsMs };
    const { pem } = known;
    if (pem !== undefined && pem.length > mostPemCharacters)
      throw new InvalidInput(
        `Harvester's setting ${trustSetting} is too long for a Job: name your own authorities alone`,
      );
    return pem;
  };
};

const readPem = async (kube: KubeClient): Promise<string | undefined> => {
  try {
    const setting = await kube.get(harvesterSettings, { name: trustSetting });
    return setting?.value || setting?.default || undefined;
  } catch (error) {
    // The kind is not there where Harvester is not.
    if (isNotFound(error)) return undefined;
    throw error;
  }
};

interface Trusting {
  readonly settings: PopulateSettings;
  readonly trust: TrustLook;
}

/** Asked only where something may be fetched. */
export const trustedSettings = async (
  { settings, trust }: Trusting,
  isFetching: boolean | undefined,
): Promise<PopulateSettings> => (isFetching === true ? trusting(settings, await trust()) : settings);

/** What Jobs are told. */
export const trusting = (settings: PopulateSettings, pem: string | undefined): PopulateSettings => {
  if (pem === undefined) return settings;
  const { proxies = { none: [] } } = settings;
  const ca = [proxies.ca, pem].filter((one) => one !== undefined).join('\n');
  return { ...settings, additionalCa: pem, proxies: { ...proxies, ca } };
};
