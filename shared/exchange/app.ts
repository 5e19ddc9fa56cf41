// The HTTP routes of the transfer function: one for each kind of upload and download.
import { Hono } from 'hono';
import { cors } from 'hono/cors';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { download } from '#shared/exchange/download/download.ts';
import { cancelDownload, downloadImage, uploadToImage } from './harvester.ts';
import { makeLink } from '#shared/exchange/download/link.ts';
import { Problem, respondProblem, toProblem } from '#shared/exchange/http/problem.ts';
import { prefixOf } from '#shared/exchange/http/public-url.ts';
import { type TargetName, isObjectName, isTargetPlural } from '#shared/exchange/target-name.ts';
import { cdiPaths, cdiUpload } from '#shared/exchange/upload/cdi.ts';
import { standingOf } from '#shared/exchange/upload/standing.ts';
import { createTus } from '#shared/exchange/upload/tus.ts';
import { toKeySet } from '#shared/runtime/token.ts';

/** Headers that web pages may read: those of tus, and of files. */
const exposed = [
  'Location',
  'Upload-Offset',
  'Upload-Length',
  'Upload-Metadata',
  'Tus-Resumable',
  'Tus-Version',
  'Tus-Extension',
  'Tus-Max-Size',
  'Content-Disposition',
  'Content-Length',
  'Content-Range',
  'Accept-Ranges',
  'ETag',
  'Retry-After',
];

const allowCors = ({ corsOrigins }: ExchangeDeps) =>
  cors({
    origin: corsOrigins.includes('*') ? '*' : [...corsOrigins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS'],
    exposeHeaders: exposed,
    maxAge: 3600,
  });

const imageBases = ['/v1/harvester/harvesterhci.io.virtualmachineimages', '/v1/harvesterhci.io.virtualmachineimages'];

const parametersOf = (parameters: { plural: string; namespace: string; name: string }): TargetName => {
  const { plural, namespace, name } = parameters;
  if (!isTargetPlural(plural)) throw new Problem(404, 'NotFound', `there are no uploads and downloads for ${plural}`);
  // Valid names of Kubernetes objects; no other name is routed.
  const wrong = [namespace, name].find((text) => !isObjectName(text));
  if (wrong === undefined) return { plural, namespace, name };
  throw new Problem(
    404,
    'NotFound',
    `"${wrong.slice(0, 80)}" is not a valid name: use lower-case letters, digits, - and .`,
  );
};

const asMuch = { format: 'qcow2', compression: 'none' } as const;
/** Harvester's downloads are compressed. */
const packed = { format: 'qcow2', compression: 'zlib' } as const;

const addDownloads = (app: Hono, deps: ExchangeDeps): void => {
  const path = '/downloads/:plural/:namespace/:name';
  app.get(path, (c) => download(deps, c.req.raw, parametersOf(c.req.param()), { standard: asMuch }));
  app.post(path, (c) => makeLink(deps, c.req.raw, parametersOf(c.req.param()), asMuch));
  for (const base of imageBases) {
    const imageOf = (parameters: { namespace: string; name: string }): TargetName =>
      parametersOf({ plural: 'virtualmachineimages', ...parameters });
    app.get(`${base}/:namespace/:name/download`, (c) => downloadImage(deps, c.req.raw, imageOf(c.req.param()), packed));
    app.get(`${base}/:namespace/:name/downloadcancel`, (c) => cancelDownload(deps, c.req.raw, imageOf(c.req.param())));
  }
};

/** Served at the root, for proxies that strip the prefix, and below the prefix of the public URL, for those that do not. */
export const createExchange = (deps: ExchangeDeps): Hono => {
  const app = new Hono();
  app.use(allowCors(deps));
  const [routes, prefix] = [createRoutes(deps), prefixOf(deps.publicUrl)];
  app.route('/', routes);
  if (prefix !== '') app.route(prefix, routes);
  app.onError((error) => {
    if (!(error instanceof Problem)) deps.log.error('a request failed', { error });
    return respondProblem(toProblem(error));
  });
  app.notFound(() => respondProblem(new Problem(404, 'NotFound', 'there is no such path')));
  return app;
};

const createRoutes = (deps: ExchangeDeps): Hono => {
  const app = new Hono();
  app.get('/keys', async (c) => c.json(toKeySet(await deps.keys.verifying({ isFresh: true }))));
  for (const version of ['v1beta1', 'v1alpha1']) {
    for (const path of cdiPaths) app.all(`/${version}/${path}`, (c) => cdiUpload(deps, c.req.raw, path));
  }
  for (const base of imageBases) {
    app.post(`${base}/:namespace/:name`, (c) => {
      if (c.req.query('action') !== 'upload') throw new Problem(404, 'NotFound', 'the only supported action is upload');
      return uploadToImage(deps, c.req.raw, parametersOf({ plural: 'virtualmachineimages', ...c.req.param() }));
    });
  }
  addDownloads(app, deps);
  app.get('/files/:plural/:namespace/:name', async (c) =>
    c.req.raw.method === 'HEAD'
      ? c.body(null, 405)
      : c.json(await standingOf(deps, c.req.raw, parametersOf(c.req.param()))),
  );
  const tus = createTus(deps);
  for (const path of ['/files/:plural/:namespace/:name', '/files/:plural/:namespace/:name/:id']) {
    app.all(path, (c) => {
      const { plural = '', namespace = '', name = '' } = c.req.param() as Record<string, string>;
      return tus(c.req.raw, parametersOf({ plural, namespace, name }));
    });
  }
  return app;
};
