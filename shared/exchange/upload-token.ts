// UploadTokenRequest, CDI's way to a token for one claim: an aggregated API, so that `kubectl create` and `virtctl` get it from the cluster
// with the rights they have there. Only the front proxy of the API server is believed.
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { z } from 'zod';
import type { Requester } from '#shared/access/review.ts';
import type { KeyRing } from '#shared/exchange/access/keys.ts';
import { Problem, respondProblem, toProblem } from '#shared/exchange/http/problem.ts';
import { targetText, uploadTokenResource } from '#shared/exchange/target-name.ts';
import { signToken } from '#shared/runtime/token.ts';

export const uploadTokenGroup = uploadTokenResource.group;
/** As the original: v1alpha1 is the same. */
export const uploadTokenVersions = ['v1beta1', 'v1alpha1'] as const;

/** Long enough for a client to come by; the upload itself may take as long as it takes. */
export const uploadTokenSeconds = 300;

/** Far more than a request needs. */
const mostBytes = 1024 * 1024;

export interface UploadTokenDeps {
  readonly keys: KeyRing;
  readonly now: () => number;
  /** Whether the connection is of the front proxy: it showed a certificate of the authority and the name that the cluster publishes. */
  readonly isFrontProxy: (request: Request) => boolean;
}

const UploadTokenRequest = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  metadata: z.looseObject({}).default({}),
  spec: z.looseObject({ pvcName: z.string().min(1) }),
});

const resource = (version: string) => ({
  name: uploadTokenResource.resource,
  singularName: 'uploadtokenrequest',
  namespaced: true,
  group: uploadTokenGroup,
  version,
  kind: 'UploadTokenRequest',
  verbs: ['create'],
  shortNames: ['utr', 'utrs'],
});

const schemaName = (version: string): string => `io.kubevirt.cdi.upload.${version}.UploadTokenRequest`;

/** What `kubectl` validates and explains by. */
const openApi = (version: string) => {
  const reference = { $ref: `#/components/schemas/${schemaName(version)}` };
  const text = { type: 'string' };
  const body = { content: { 'application/json': { schema: reference } } };
  return {
    openapi: '3.0.0',
    info: { title: 'Bullion', version },
    paths: {
      [`/apis/${uploadTokenGroup}/${version}/namespaces/{namespace}/${uploadTokenResource.resource}`]: {
        post: {
          'x-kubernetes-action': 'post',
          'x-kubernetes-group-version-kind': { group: uploadTokenGroup, version, kind: 'UploadTokenRequest' },
          parameters: ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
            name,
            in: 'query',
            schema: text,
          })),
          requestBody: body,
          responses: { 201: { description: 'Created', ...body } },
        },
      },
    },
    components: {
      schemas: {
        [schemaName(version)]: {
          description:
            'Asks for a token to upload into a claim with. It is in status.token and holds for five minutes.',
          type: 'object',
          'x-kubernetes-group-version-kind': [{ group: uploadTokenGroup, version, kind: 'UploadTokenRequest' }],
          properties: {
            apiVersion: text,
            kind: text,
            metadata: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            spec: {
              type: 'object',
              required: ['pvcName'],
              properties: { pvcName: { ...text, description: 'name of the claim to upload into' } },
            },
            status: { type: 'object', properties: { token: { ...text, description: 'the token' } } },
          },
        },
      },
    },
  };
};

const openApiEntry = (version: string): readonly [string, { readonly serverRelativeURL: string }] => {
  const path = `apis/${uploadTokenGroup}/${version}`;
  const hash = createHash('sha256')
    .update(JSON.stringify(openApi(version)))
    .digest('hex')
    .toUpperCase();
  return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }];
};

/** As the front proxy says it; throws a Problem (401) where nobody vouches for it. */
const requesterOf = (request: Request, { isFrontProxy }: UploadTokenDeps): Requester => {
  const username = request.headers.get('x-remote-user');
  if (isFrontProxy(request) && username !== null && username !== '') return { username };
  throw new Problem(401, 'Unauthorized', 'this API is reached through the API server of the cluster only');
};

const create = async (
  deps: UploadTokenDeps,
  request: Request,
  { namespace, version }: { namespace: string; version: string },
) => {
  const { username } = requesterOf(request, deps);
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > mostBytes) {
    throw new Problem(413, 'RequestEntityTooLarge', `an UploadTokenRequest has ${mostBytes} bytes at most`);
  }
  const parsed = UploadTokenRequest.safeParse(parseJson(Buffer.from(bytes).toString()));
  if (!parsed.success) throw new Problem(422, 'Invalid', 'spec.pvcName: Required value: name the claim to upload into');
  const { metadata, spec } = parsed.data;
  const iat = Math.floor(deps.now() / 1000);
  const target = targetText({ plural: 'persistentvolumeclaims', namespace, name: spec.pvcName });
  const claims = { sub: username, verb: 'upload', target, iat, exp: iat + uploadTokenSeconds } as const;
  return {
    apiVersion: `${uploadTokenGroup}/${version}`,
    kind: 'UploadTokenRequest',
    metadata: { ...metadata, namespace, creationTimestamp: new Date(deps.now()).toISOString().replace(/\.\d+Z$/, 'Z') },
    spec,
    status: { token: signToken(await deps.keys.signing(), claims) },
  };
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(400, 'BadRequest', 'the body is not JSON');
  }
};

export const createUploadTokenApi = (deps: UploadTokenDeps): Hono => {
  const app = new Hono();
  app.onError((error) => respondProblem(toProblem(error)));
  app.notFound(() => respondProblem(new Problem(404, 'NotFound', 'the server could not find the requested resource')));
  // The aggregator of a real API server looks there for the documents of each version, and for their digests to see that they changed.
  app.get('/openapi/v3', (c) => c.json({ paths: Object.fromEntries(uploadTokenVersions.map(openApiEntry)) }));
  for (const version of uploadTokenVersions) {
    const path = `/apis/${uploadTokenGroup}/${version}`;
    app.get(path, (c) =>
      c.json({
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion: `${uploadTokenGroup}/${version}`,
        resources: [resource(version)],
      }),
    );
    app.get(`/openapi/v3${path}`, (c) => c.json(openApi(version)));
    app.post(`${path}/namespaces/:namespace/${uploadTokenResource.resource}`, async (c) =>
      c.json(await create(deps, c.req.raw, { namespace: c.req.param('namespace'), version }), 201),
    );
    // There is nothing to read: what is asked for is told once.
    app.get(`${path}/namespaces/:namespace/${uploadTokenResource.resource}`, () => {
      throw new Problem(405, 'MethodNotAllowed', 'an UploadTokenRequest is created and not kept');
    });
  }
  return app;
};
