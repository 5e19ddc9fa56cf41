// UploadTokenRequest as OpenAPI v3, for validation and `kubectl explain`.
import { targetPlurals, uploadTokenResource } from '#shared/exchange/target-name.ts';

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
export const openApi = (version: string): object => {
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
