// The routes of the console. Each page reads with the client of who looks, so that RBAC alone decides what is seen and done.
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { etag } from 'hono/etag';
import { html } from 'hono/html';
import { labels } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { script, style } from '#shared/console/assets.ts';
import { uploadScript } from '#shared/console/upload-script.ts';
import { addImport } from '#shared/console/import-page.ts';
import { backupsPage, readBackups } from '#shared/console/backups-page.ts';
import { addUpload } from '#shared/console/upload-page.ts';
import { addGolden } from '#shared/console/golden-routes.ts';
import { listPage } from '#shared/console/list-page.ts';
import { readSince, streamChanges, streamRows } from '#shared/console/live.ts';
import { readListing } from '#shared/console/listing.ts';
import { addLogin, cookieIn } from '#shared/console/login-routes.ts';
import { type Page, trouble } from '#shared/console/markup.ts';
import { addObjects } from '#shared/console/object-routes.ts';
import { queuePage, queueTypes, readQueue } from '#shared/console/queue-page.ts';
import { readQuery } from '#shared/console/query.ts';
import { cookieName, isOwnForm, namespaceOf, unseal } from '#shared/console/session.ts';
import {
  type ConsoleApp,
  type ConsoleContext,
  type ConsoleDeps,
  liveOf,
  policyOf,
  show,
} from '#shared/console/visit.ts';
import { AppError, NotFound } from '#shared/runtime/errors.ts';

const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** HTTP status of each kind of error. */
const statuses = { Denied: 403, NotFound: 404, InvalidInput: 400, Conflict: 409, Unavailable: 503 } as const;

const failurePage = (error: unknown): Page => ({
  title: 'Error',
  body: html`<h1>The request failed</h1>
    ${trouble(error)}
    <p><a href="/objects">Images and volumes</a> · <a href="/login">Log in as another user</a></p>`,
});

const hostOf = (request: Request): string => request.headers.get('host') ?? new URL(request.url).host;

/** A name that leads to this address by somebody else's DNS is not ours. */
const isOurs = (request: Request, url: string | undefined): boolean =>
  url === undefined || hostOf(request) === new URL(url).host;

const addGuards = (app: ConsoleApp, deps: ConsoleDeps): void => {
  app.use(async (c, next) => {
    if (!isOurs(c.req.raw, deps.url)) return c.text(`Open ${deps.url}: other names of this host are not served.`, 421);
    await next();
    for (const [name, value] of Object.entries(securityHeaders)) c.res.headers.set(name, value);
    if (!c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store');
    if (!c.res.headers.has('content-security-policy')) c.res.headers.set('content-security-policy', policyOf(''));
    return undefined;
  });
  app.use(async (c, next) => {
    if (c.req.method === 'POST' && !isOwnForm(c.req.raw.headers))
      return c.text('This form was not sent by this page.', 400);
    return next();
  });
};

const addAssets = (app: ConsoleApp): void => {
  const revalidated = { 'cache-control': 'no-cache' };
  const javascript = { ...revalidated, 'content-type': 'text/javascript; charset=utf-8' };
  // Pages are not compressed: their size would tell of secrets beside what others can put into them.
  for (const path of ['/console.js', '/upload.js', '/console.css']) app.use(path, compress(), etag());
  app.get('/console.js', (c) => c.body(script, 200, javascript));
  app.get('/upload.js', (c) => c.body(uploadScript, 200, javascript));
  app.get('/console.css', (c) => c.body(style, 200, { ...revalidated, 'content-type': 'text/css; charset=utf-8' }));
};

/** Everything after this needs a session. */
const requireSession = (app: ConsoleApp, deps: ConsoleDeps): void => {
  app.use(async (c, next) => {
    const sealed = cookieIn(c.req.raw, cookieName);
    const session = sealed === undefined ? undefined : await unseal(sealed, deps.sessionKey, deps.now());
    if (session === undefined) {
      if (c.req.method === 'GET' && !c.req.path.startsWith('/live/')) return c.redirect('/login', 303);
      return c.text('the session has ended: log in again, for example in another tab', 401);
    }
    c.set('visit', { kube: await deps.connect(session.identity), session, now: new Date(deps.now()) });
    return next();
  });
};

const addLists = (app: ConsoleApp, deps: ConsoleDeps): void => {
  app.get('/', (c) => c.redirect('/objects', 303));
  app.get('/objects', async (c) => {
    const { kube, session, now } = c.get('visit');
    const asked = readQuery(new URL(c.req.url).searchParams);
    const listing = await readListing(kube, asked);
    const own = namespaceOf(session);
    // Who may see one namespace alone is shown that one.
    if (listing.denied.length > 0 && listing.found.length === 0 && asked.namespace === '' && own !== undefined) {
      const query = { ...asked, namespace: own };
      return show(c, listPage(await readListing(kube, query), query, now));
    }
    return show(c, listPage(listing, asked, now));
  });
  app.get('/live/objects', (c) => {
    const parameters = new URL(c.req.url).searchParams;
    const query = readQuery(parameters);
    const namespace = query.namespace === '' ? undefined : query.namespace;
    const watched = readSince(parameters.get('since') ?? '').map((one) => ({ ...one, namespace }));
    return streamRows(c, liveOf(c, deps), query, watched);
  });
};

/** Milliseconds between two readings of the queue, which reads the objects of up to a hundred transfers. */
const queueMs = 2000;

/** What may be seen of a namespace, or of all; else of the own one, for an account that may see no other. */
const readWhereAllowed = async <T extends { readonly denied: string | undefined }>(
  c: ConsoleContext,
  read: (kube: KubeClient, namespace: string | undefined) => Promise<T>,
): Promise<{ readonly found: T; readonly namespace: string }> => {
  const { kube, session } = c.get('visit');
  const { namespace = '' } = c.req.query();
  const found = await read(kube, namespace === '' ? undefined : namespace);
  const own = namespaceOf(session);
  if (found.denied === undefined || namespace !== '' || own === undefined) return { found, namespace };
  return { found: await read(kube, own), namespace: own };
};

const addQueue = (app: ConsoleApp, deps: ConsoleDeps): void => {
  app.get('/queue', async (c) => {
    const { found, namespace } = await readWhereAllowed(c, readQueue);
    return show(c, queuePage(found, namespace, c.get('visit').now));
  });
  app.get('/backups', async (c) => {
    const { found, namespace } = await readWhereAllowed(c, readBackups);
    return show(c, backupsPage(found, namespace, c.get('visit').now));
  });
  app.get('/live/queue', (c) => {
    const { namespace = '', since = '' } = c.req.query();
    const watched = readSince(since, queueTypes).map((one) => ({
      ...one,
      namespace: namespace === '' ? undefined : namespace,
      ...(one.type.plural === 'jobs' ? { labelSelector: labels.ownerKind } : {}),
    }));
    return streamChanges(c, liveOf(c, deps), watched, queueMs);
  });
};

export const createConsole = (deps: ConsoleDeps): ConsoleApp => {
  const app: ConsoleApp = new Hono();
  addGuards(app, deps);
  addAssets(app);
  addLogin(app, deps);
  requireSession(app, deps);
  addLists(app, deps);
  addObjects(app, deps);
  addGolden(app, deps);
  addQueue(app, deps);
  addImport(app);
  addUpload(app);
  app.notFound((c) => show(c, failurePage(new NotFound('there is no such page')), 404));
  app.onError((error, c) => {
    if (!(error instanceof AppError)) deps.log.error('a page failed', { error });
    const status = error instanceof AppError ? (statuses[error.code as keyof typeof statuses] ?? 500) : 500;
    return show(c, failurePage(error), status);
  });
  return app;
};
