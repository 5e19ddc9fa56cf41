// The API server as issuer of the tokens of Triggers: its two paths, and tokens as in Knative.
import { Hono } from 'hono';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import type { Issuer as Known } from '#shared/runtime/caller.ts';

export interface Issuer {
  /** The published keys. */
  readonly keys: Known;
  /** The responses of the API server about its keys. */
  readonly app: Hono;
  /** A bearer token of the account of a Trigger. */
  readonly tokenOf: (trigger: string, audience: string) => Promise<string>;
}

const issuer = 'https://kubernetes.default.svc';

export const createIssuer = async (): Promise<Issuer> => {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }];
  return {
    keys: { issuer, keys: { keys } },
    app: new Hono()
      .get('/.well-known/openid-configuration', (c) => c.json({ issuer }))
      .get('/openid/v1/jwks', (c) => c.json({ keys })),
    tokenOf: (trigger, audience) =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(`system:serviceaccount:bullion-system:${trigger}`)
        .setExpirationTime('1h')
        .sign(privateKey),
  };
};
