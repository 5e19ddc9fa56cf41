// Addresses of the clouds whose credentials are exchanged for tokens. Credentials and tokens are sent nowhere else, whatever a URL or a key file says.
import { z } from 'zod';

/** In place of the public ones: of sovereign clouds and private networks, set by the operator. */
export const CloudEndpoints = z.strictObject({
  googleStorage: z.url().default('https://storage.googleapis.com'),
  googleToken: z.url().default('https://oauth2.googleapis.com/token'),
  googleSts: z.url().default('https://sts.googleapis.com/v1/token'),
  googleIam: z.url().default('https://iamcredentials.googleapis.com'),
  azureLogin: z.url().default('https://login.microsoftonline.com'),
  /** Each account is a name below it. */
  azureStorage: z.url().default('https://blob.core.windows.net'),
});
export type CloudEndpoints = z.infer<typeof CloudEndpoints>;

export const publicClouds: CloudEndpoints = CloudEndpoints.parse({});

export const cloudNames = { google: 'Google Cloud Storage', azure: 'Azure Blob Storage' } as const;
export type Cloud = keyof typeof cloudNames;

const isBelow = (url: URL, base: string): boolean => {
  const { protocol, host } = new URL(base);
  return url.protocol === protocol && (url.host === host || url.host.endsWith(`.${host}`));
};

/** The cloud whose store has the URL; `undefined`: none of them. */
export const cloudOf = (url: URL, { googleStorage, azureStorage }: CloudEndpoints): Cloud | undefined => {
  if (isBelow(url, googleStorage)) return 'google';
  return isBelow(url, azureStorage) ? 'azure' : undefined;
};
