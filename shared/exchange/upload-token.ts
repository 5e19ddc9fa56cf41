// UploadTokenRequest, CDI's API to request a token for one claim: an aggregated API, so that `kubectl create` and `virtctl` use it with the
// user's own permissions. Only requests of the API server's front proxy are accepted.
import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { z } from 'zod';
import type { Requester } from '#shared/access/permissions.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { type Deed, permit } from '#shared/exchange/access/caller.ts';
import type { KeyRing } from '#shared/exchange/access/keys.ts';
import { Problem, respondProblem, toProblem } from '#shared/exchange/http/problem.ts';
import { isObjectName, type TargetName, targetPlurals, targetText, uploadTokenResource } from './target-name.ts';
import { signToken } from '#shared/runtime/token.ts';

// UploadTokenRequest as OpenAPI v3, for validation and `kubectl explain`.

const { group, resource } = uploadTokenResource;
const text = { type: 'string' };

const schemaName = (version: string): string => `io.kubevirt.cdi.upload.${version}.UploadTokenRequest`;

const schemaOf = (version: string): object => ({
  description:
    'Requests a token for an upload into a claim. The token is in status.token and is valid for five minutes.',
  type: 'object',
  'x-kubernetes-group-version-kind': [{ group: group, version, kind: 'UploadTokenRequest' }],
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    spec: {
      type: 'object',
      properties: {
        pvcName: { ...text, description: 'name of the claim to upload into' },
        target: {
          type: 'object',
          description: 'target of the token, instead of pvcName',
          properties: { resource: { ...text, enum: [...targetPlurals] }, name: text },
        },
        operation: { ...text, enum: ['upload', 'download'], description: 'operation on the target' },
      },
    },
    status: {
      type: 'object',
      properties: {
        token: { ...text, description: 'the token' },
        url: { ...text, description: 'URL of the transfer function that accepts the token' },
      },
    },
  },
});

/** The documents for `kubectl` validation and explain. */
const openApi = (version: string): object => {
  const reference = { $ref: `#/components/schemas/${schemaName(version)}` };
  const body = { content: { 'application/json': { schema: reference } } };
  return {
    openapi: '3.0.0',
    info: { title: 'Bullion', version },
    paths: {
      [`/apis/${group}/${version}/namespaces/{namespace}/${resource}`]: {
        post: {
          'x-kubernetes-action': 'post',
          'x-kubernetes-group-version-kind': { group: group, version, kind: 'UploadTokenRequest' },
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
        [schemaName(version)]: schemaOf(version),
      },
    },
  };
};

export const uploadTokenGroup = uploadTokenResource.group;
/** As in the original: v1alpha1 is the same. */
export const uploadTokenVersions = ['v1beta1', 'v1alpha1'] as const;

/** Long enough for a client to start its upload; the upload itself may take longer. */
const uploadTokenSeconds = 300;

/** Far more than a request needs. */
const mostBytes = 1024 * 1024;

export interface UploadTokenDeps {
  readonly kube: KubeClient;
  /** URL that accepts the token; reported with it. */
  readonly publicUrl?: string | undefined;
  readonly keys: KeyRing;
  readonly now: () => number;
  /** Whether the connection comes from the front proxy: it presented a certificate of the CA with the name that the cluster publishes. */
  readonly isFrontProxy: (request: Request) => boolean;
}

const UploadTokenRequest = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  metadata: z.looseObject({}).default({}),
  spec: z.union([
    z.looseObject({ pvcName: z.string().refine(isObjectName) }),
    z.looseObject({
      target: z.strictObject({ resource: z.enum(targetPlurals), name: z.string().refine(isObjectName) }),
      operation: z.enum(['upload', 'download']),
    }),
  ]),
});
type Spec = z.infer<typeof UploadTokenRequest>['spec'];

const resourceOf = (version: string) => ({
  name: uploadTokenResource.resource,
  singularName: 'uploadtokenrequest',
  namespaced: true,
  group: uploadTokenGroup,
  version,
  kind: 'UploadTokenRequest',
  verbs: ['create'],
  shortNames: ['utr', 'utrs'],
});

const openApiEntry = (version: string): readonly [string, { readonly serverRelativeURL: string }] => {
  const path = `apis/${uploadTokenGroup}/${version}`;
  const hash = createHash('sha256')
    .update(JSON.stringify(openApi(version)))
    .digest('hex')
    .toUpperCase();
  return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }];
};

/** The requester according to the front proxy; throws a Problem (401) for any other connection. */
const requesterOf = (request: Request, { isFrontProxy }: UploadTokenDeps): Requester => {
  const username = request.headers.get('x-remote-user');
  const groups = (request.headers.get('x-remote-group') ?? '').split(/, */).filter((group) => group !== '');
  if (isFrontProxy(request) && username !== null && username !== '') return { username, groups };
  throw new Problem(401, 'Unauthorized', 'this API is reached through the API server of the cluster only');
};

/** A claim needs only the permission to create the request, as in CDI; another target needs the permission for the operation. */
const wantedOf = async (
  { kube }: UploadTokenDeps,
  requester: Requester,
  namespace: string,
  spec: Spec,
): Promise<{ readonly verb: Deed; readonly target: TargetName }> => {
  if ('pvcName' in spec && typeof spec.pvcName === 'string')
    return { verb: 'upload', target: { plural: 'persistentvolumeclaims', namespace, name: spec.pvcName } };
  const { target, operation } = spec as Extract<Spec, { target: object }>;
  const name = { plural: target.resource, namespace, name: target.name };
  await permit(kube, { by: 'cluster', requester }, operation, name);
  return { verb: operation, target: name };
};

const create = async (
  deps: UploadTokenDeps,
  request: Request,
  { namespace, version }: { namespace: string; version: string },
) => {
  const requester = requesterOf(request, deps);
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > mostBytes) {
    throw new Problem(413, 'RequestEntityTooLarge', `an UploadTokenRequest has ${mostBytes} bytes at most`);
  }
  const parsed = UploadTokenRequest.safeParse(bodyIn(Buffer.from(bytes).toString()));
  if (!parsed.success)
    throw new Problem(
      422,
      'Invalid',
      'spec.pvcName: Required value: name the claim to upload into, or target and operation',
    );
  const { metadata, spec } = parsed.data;
  const { verb, target } = await wantedOf(deps, requester, namespace, spec);
  const iat = Math.floor(deps.now() / 1000);
  const claims = { sub: requester.username, verb, target: targetText(target), iat, exp: iat + uploadTokenSeconds };
  return {
    apiVersion: `${uploadTokenGroup}/${version}`,
    kind: 'UploadTokenRequest',
    metadata: { ...metadata, namespace, creationTimestamp: new Date(deps.now()).toISOString().replace(/\.\d+Z$/, 'Z') },
    spec,
    status: {
      token: signToken(await deps.keys.signing(), claims),
      ...(deps.publicUrl === undefined ? {} : { url: deps.publicUrl }),
    },
  };
};

const bodyIn = (text: string): unknown => {
  const value = parseJson(text);
  if (value === undefined) throw new Problem(400, 'BadRequest', 'the body is not JSON');
  return value;
};

export const createUploadTokenApi = (deps: UploadTokenDeps): Hono => {
  const app = new Hono();
  app.onError((error) => respondProblem(toProblem(error)));
  app.notFound(() => respondProblem(new Problem(404, 'NotFound', 'the server could not find the requested resource')));
  // The aggregator of a real API server reads the documents of each version here, and detects changes by their digests.
  app.get('/openapi/v3', (c) => c.json({ paths: Object.fromEntries(uploadTokenVersions.map(openApiEntry)) }));
  for (const version of uploadTokenVersions) {
    const path = `/apis/${uploadTokenGroup}/${version}`;
    app.get(path, (c) =>
      c.json({
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion: `${uploadTokenGroup}/${version}`,
        resources: [resourceOf(version)],
      }),
    );
    app.get(`/openapi/v3${path}`, (c) => c.json(openApi(version)));
    app.post(`${path}/namespaces/:namespace/${uploadTokenResource.resource}`, async (c) =>
      c.json(await create(deps, c.req.raw, { namespace: c.req.param('namespace'), version }), 201),
    );
    // Requests are not stored: the token is returned once.
    app.get(`${path}/namespaces/:namespace/${uploadTokenResource.resource}`, () => {
      throw new Problem(405, 'MethodNotAllowed', 'an UploadTokenRequest is not stored and can only be created');
    });
  }
  return app;
};
