// What the routes of the console share: who looks, with which client, and how a page is answered.
import type { OidcOptions } from '#shared/console/oidc.ts';
import type { Context, Hono } from 'hono';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Live } from './live.ts';
import { type Page, toDocument } from './markup.ts';
import type { Session, VisitorIdentity } from './session.ts';
import { Denied, InvalidInput, Unavailable } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

// Clients of the API server with the rights of who looks, and none of our own.

type ConnectVisitor = (identity: VisitorIdentity) => Promise<KubeClient>;

/** Connections are kept for so many people at once. */
const mostKept = 64;

/** The address and the authority of a kubeconfig, or of the pod, with the token of the visitor in place of its user. */
export const createVisitors = (kubeconfig?: string): ConnectVisitor => {
  const kept = new Map<string, KubeClient>();
  return async (identity) => {
    if (identity === 'owner') throw new Denied('log in with a token');
    const { token } = identity;
    const client = kept.get(token) ?? (await connect(kubeconfig, token));
    // What was used last is kept longest.
    kept.delete(token);
    kept.set(token, client);
    for (const oldest of [...kept.keys()].slice(0, -mostKept)) kept.delete(oldest);
    return client;
  };
};

const connect = async (kubeconfig: string | undefined, token: string): Promise<KubeClient> => {
  const { createKubeClient, loadKubeConfig } = await import('#shared/clients/kube/create.ts');
  const config = loadKubeConfig(kubeconfig);
  const cluster = config.getCurrentCluster();
  const name = 'visitor';
  if (cluster === null) throw new Unavailable('the kubeconfig has no current cluster');
  config.loadFromOptions({
    clusters: [cluster],
    users: [{ name, token }],
    contexts: [{ name, cluster: cluster.name, user: name }],
    currentContext: name,
  });
  return createKubeClient(config);
};

export interface ConsoleDeps {
  readonly connect: ConnectVisitor;
  /** Seals sessions. */
  readonly sessionKey: Uint8Array;
  /** Its own public URL: other hosts are refused. */
  readonly url?: string | undefined;
  /** Logs the owner of this computer in, once; returns whether this is the code. */
  readonly takeCode?: ((code: string) => boolean) | undefined;
  /** Login at an issuer; without it, only tokens that are pasted. */
  readonly oidc?: OidcOptions | undefined;
  readonly log: Logger;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** What a page knows of who looks. */
interface ConsoleVisit {
  readonly kube: KubeClient;
  readonly session: Session;
  readonly now: Date;
}

interface Env {
  Variables: { visit: ConsoleVisit };
}
export type ConsoleContext = Context<Env>;
export type ConsoleApp = Hono<Env>;

/** `connect`: where the script may send files to. */
export const policyOf = (connect: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    'img-src data:',
    `connect-src 'self'${connect === '' ? '' : ` ${connect}`}`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

export const show = (c: ConsoleContext, page: Page, status: 200 | 400 | 401 | 403 | 404 | 409 | 500 | 503 = 200) =>
  c.html(toDocument(page, c.get('visit')?.session.user), status);

const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** Every field of a form that is text. */
export const readForm = async (c: ConsoleContext): Promise<Readonly<Record<string, string>>> => {
  const body = await c.req.parseBody();
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, textOf(value)]));
};

export const liveOf = (c: ConsoleContext, deps: ConsoleDeps): Live => {
  const { kube, session } = c.get('visit');
  return { kube, now: deps.now, until: session.until };
};

/** Only what a browser downloads: never another scheme. */
export const webUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new InvalidInput('the cluster does not publish the URL of its transfer function: set PUBLIC_URL of transfer');
  return url;
};
