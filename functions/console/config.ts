// Settings of the console.
import { z } from 'zod';
import { kubeSettings, serverSettings, setting, tlsSettings } from '#shared/runtime/config.ts';

const keyBytes = 32;

export const Config = z.object({
  ...serverSettings,
  ...kubeSettings,
  ...tlsSettings,
  consoleUrl: setting(
    'CONSOLE_URL',
    'Public URL of the console: requests to other hosts are refused, and cookies are sent only over HTTPS if it is an https URL. Default: any host.',
    z.url().optional(),
  ),
  oidcIssuer: setting(
    'OIDC_ISSUER',
    'URL of the OIDC issuer whose ID tokens the API server accepts; with it, users log in there. Requires CONSOLE_URL, OIDC_CLIENT_ID and a SESSION_KEY. Default: users paste tokens.',
    z.url().optional(),
  ),
  oidcClientId: setting(
    'OIDC_CLIENT_ID',
    'Client of the console at the issuer: a public one, which has no secret and uses PKCE. The API server must accept it as audience.',
    z.string().min(1).optional(),
  ),
  oidcScopes: setting(
    'OIDC_SCOPES',
    'Scopes that are asked for, separated by spaces.',
    z.string().default('openid email groups'),
  ),
  sessionKey: setting(
    'SESSION_KEY',
    'Key that seals sessions: 32 bytes in base64. Default: a new key at each start, which ends existing sessions.',
    z
      .string()
      .transform((text) => new Uint8Array(Buffer.from(text, 'base64')))
      .refine((key) => key.length === keyBytes, 'must be 32 bytes in base64: openssl rand -base64 32')
      .default(() => crypto.getRandomValues(new Uint8Array(keyBytes))),
  ),
});
