// UploadTokenRequest as OpenAPI v3, so that `kubectl` validates and explains it.
import { targetPlurals, uploadTokenResource } from '#shared/exchange/target-name.ts';

const { group, resource } = uploadTokenResource;
const text = { type: 'string' };

const schemaName = (version: string): string => `io.kubevirt.cdi.upload.${version}.UploadTokenRequest`;

const schemaOf = (version: string): object => ({
  description: 'Asks for a token to upload into a claim with. It is in status.token and holds for five minutes.',
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
          description: 'what the token is for, in place of pvcName',
          properties: { resource: { ...text, enum: [...targetPlurals] }, name: text },
        },
        operation: { ...text, enum: ['upload', 'download'], description: 'what is done to the target' },
      },
    },
    status: {
      type: 'object',
      properties: {
        token: { ...text, description: 'the token' },
        url: { ...text, description: 'of the transfer function, where the token is good' },
      },
    },
  },
});

/** What `kubectl` validates and explains by. */
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
