// Paths other than resources: discovery, health, version, OpenAPI, keys.
import { createHash } from 'node:crypto';
import type { Discovery } from '../discovery/discovery.ts';
import { versionInfo } from '../discovery/discovery.ts';
import { emptyProtobufV2, protobufV2Accept, protobufV2Type } from '../discovery/open-api.ts';
import type { OpenApi } from '../discovery/open-api.ts';
import { notAcceptable } from '../status/status.ts';
import { parseAccept } from './negotiate.ts';
import type { RequestInfo } from './request.ts';
import { notFoundPage, respond } from './respond.ts';

const health = /^\/(healthz|livez|readyz)(\/[a-z0-9/-]*)?$/;

const plain = (text: string): Response =>
  new Response(text, {
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache, private',
    },
  });

/** The version of aggregated discovery that a client prefers to the classic form, if any. */
const aggregatedVersion = (accept: string | null): string | undefined => {
  for (const { type, parameters } of parseAccept(accept)) {
    if (type !== 'application/json' && type !== '*/*') continue;
    if (parameters['as'] === undefined) return undefined;
    const isKnown = parameters['g'] === 'apidiscovery.k8s.io' && parameters['as'] === 'APIGroupDiscoveryList';
    if (isKnown && parameters['v'] === 'v2') return 'v2';
  }
  return undefined;
};

const discoveryResponse = (discovery: Discovery, info: RequestInfo, request: Request): Response => {
  const accept = request.headers.get('accept');
  const ifNoneMatch = request.headers.get('if-none-match');
  const isRoot = ['api', 'apis'].includes(info.path.replaceAll('/', ''));
  const aggregated = isRoot ? aggregatedVersion(accept) : undefined;
  const document = discovery.document(info.path, aggregated);
  if (document === undefined) return notFoundPage();
  const response = respond(document);
  if (aggregated !== undefined) {
    const etag = `"${createHash('sha512').update(JSON.stringify(document)).digest('hex').toUpperCase()}"`;
    if (ifNoneMatch === etag) return new Response(null, { status: 304, headers: { etag, vary: 'Accept' } });
    response.headers.set('etag', etag);
    response.headers.set(
      'content-type',
      `application/json;g=apidiscovery.k8s.io;v=${aggregated};as=APIGroupDiscoveryList`,
    );
  }
  if (isRoot) response.headers.set('vary', 'Accept');
  return response;
};

/** OpenAPI is served as JSON; protobuf exists only for v2, which kubectl falls back to. */
const openApiResponse = (openApi: OpenApi, info: RequestInfo, accept: string | null): Response => {
  if (info.path === '/openapi/v2' && accept?.startsWith(protobufV2Accept) === true) {
    return new Response(new Uint8Array(emptyProtobufV2()), { headers: { 'content-type': protobufV2Type } });
  }
  const takesJson = parseAccept(accept).some(({ type }) => ['application/json', '*/*', 'application/*'].includes(type));
  if (!takesJson) throw notAcceptable(['application/json']);
  const document = openApi.document(info.path);
  return document === undefined ? notFoundPage() : respond(document);
};

export interface NonResources {
  readonly discovery: Discovery;
  readonly openApi: OpenApi;
}

export const handleNonResource = (
  { discovery, openApi }: NonResources,
  info: RequestInfo,
  request: Request,
): Response => {
  const accept = request.headers.get('accept');
  if (health.test(info.path)) return plain(info.query.has('verbose') ? `${info.path.slice(1)} check passed\n` : 'ok');
  if (info.path === '/version' || info.path === '/version/') return respond(versionInfo);
  if (info.path === '/metrics')
    return plain('# HELP apiserver_up Whether the server answers.\n# TYPE apiserver_up gauge\napiserver_up 1\n');
  if (info.path.startsWith('/openapi/')) return openApiResponse(openApi, info, accept);
  if (/^\/apis?(\/|$)/.test(info.path)) return discoveryResponse(discovery, info, request);
  if (info.path === '/')
    return respond({
      paths: ['/api', '/api/v1', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3', '/readyz', '/version'],
    });
  return notFoundPage();
};
