// What is asked of one object, and done to it.
import { type Found, startAgain } from '#shared/catalogue/image.ts';
import { gather, withDetail } from '#shared/catalogue/objects.ts';
import { readInventory } from '#shared/catalogue/inventory.ts';
import { getTicket, targetOf } from '#shared/catalogue/ticket.ts';
import {
  type ConsoleApp,
  type ConsoleContext,
  type ConsoleDeps,
  liveOf,
  readForm,
  show,
  webUrl,
} from '#shared/console/visit.ts';
import { readSince, streamChanges } from '#shared/console/live.ts';
import { type Usage, consumersPage, deletePage, objectPage } from '#shared/console/object-page.ts';
import { objectPath, typeOf } from '#shared/console/query.ts';
import { consumersOf } from '#shared/resources/consumers.ts';
import { Conflict, NotFound } from '#shared/runtime/errors.ts';

/** Throws NotFound. */
const find = async (c: ConsoleContext): Promise<Found> => {
  const { kind = '', namespace = '', name = '' } = c.req.param() as Record<string, string>;
  const type = typeOf(kind);
  const image = type === undefined ? undefined : await c.get('visit').kube.get(type, { namespace, name });
  if (type === undefined || image === undefined)
    throw new NotFound(`there is no ${kind} ${name} in namespace ${namespace}: it may have been deleted`);
  return { type, image: withDetail(image) };
};

const usageOf = async (c: ConsoleContext, { image }: Found): Promise<Usage> => {
  const { isPartial, ...inventory } = await readInventory(c.get('visit').kube, image.metadata.namespace);
  return { consumers: consumersOf(image, inventory), isPartial };
};

const noBearer = async (): Promise<undefined> => undefined;

/** The token in it is good for this one file, and for five minutes to begin with it. */
const downloadUrl = async (c: ConsoleContext, found: Found): Promise<string> => {
  const { kube } = c.get('visit');
  const target = targetOf(found);
  const ticket = await getTicket({ kube, operation: 'download', target, server: undefined, bearer: noBearer });
  const url = webUrl(ticket.url);
  url.searchParams.set('token', ticket.headers.authorization.replace(/^Bearer /, ''));
  return url.href;
};

export const addObjects = (app: ConsoleApp, deps: ConsoleDeps): void => {
  const path = '/objects/:kind/:namespace/:name';
  app.get(path, async (c) => {
    const { kube, now } = c.get('visit');
    return show(c, objectPage(await gather(kube, await find(c)), now, c.req.query('sha256')));
  });
  app.get('/live/object', (c) => {
    const { namespace, name = '', since = '' } = c.req.query();
    return streamChanges(
      c,
      liveOf(c, deps),
      readSince(since).map((one) => ({ ...one, namespace, name })),
    );
  });
  app.get(`${path}/consumers`, async (c) => {
    const found = await find(c);
    return show(c, consumersPage(found, await usageOf(c, found), c.get('visit').now));
  });
  app.get(`${path}/download`, async (c) => c.redirect(await downloadUrl(c, await find(c)), 303));
  app.post(`${path}/retry`, async (c) => {
    const { kube, now } = c.get('visit');
    const found = await find(c);
    if (found.image.status?.phase !== 'Failed') throw new Conflict('it has not failed: nothing to retry');
    await startAgain(kube, found, now.toISOString());
    return c.redirect(objectPath(found.type, found.image.metadata), 303);
  });
  app.get(`${path}/delete`, async (c) => {
    const found = await find(c);
    return show(c, deletePage(found, await usageOf(c, found), c.get('visit').now));
  });
  app.post(`${path}/delete`, async (c) => {
    const found = await find(c);
    const { uid = '' } = await readForm(c);
    // As it was shown: another object of the same name is not deleted in its place.
    await c.get('visit').kube.delete(found.type, found.image.metadata, uid === '' ? {} : { uid });
    return c.redirect('/objects', 303);
  });
};
