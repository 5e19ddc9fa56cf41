// OpenAPI documents of all served resources, rebuilt when a definition changes.
import type { Availability, Described } from '../aggregation/availability.ts';
import type { Registry } from '../registry/registry.ts';
import type { Resource } from '../registry/resource.ts';
import { type OpenApiResource, openApiV2, openApiV3, openApiV3Index } from '../schema/openapi.ts';

export interface OpenApi {
  /** The document at a path below /openapi; undefined when there is none. */
  readonly document: (path: string) => unknown;
}

const toOpenApiResource = (resource: Resource): OpenApiResource => {
  const schema = resource.custom === undefined ? undefined : resource.schema();
  return {
    group: resource.group,
    version: resource.version,
    kind: resource.kind,
    plural: resource.plural,
    namespaced: resource.namespaced,
    verbs: resource.verbs,
    subresources: resource.subresources.map(({ name }) => name),
    ...(schema === undefined ? {} : { schema }),
  };
};

const pathOf = (group: string, version: string): string =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`;

const extensionPath = ({ extension }: Described): string => pathOf(extension.group, extension.version);

/** For this server and the extension servers. Version 2 has only resources of this server: no client needs the others there. */
export const createOpenApi = (
  registry: Registry,
  extensions: Pick<Availability, 'described' | 'revision'>,
): OpenApi => {
  let revision = '';
  let documents = new Map<string, unknown>();

  const versions = () =>
    registry
      .groups()
      .flatMap(({ group, versions: found }) => found.map(({ version, resources }) => ({ group, version, resources })));

  const make = (path: string): unknown => {
    if (path === '/openapi/v2') return openApiV2(registry.all().map(toOpenApiResource));
    if (path === '/openapi/v3') {
      const indexed = versions().map(({ group, version, resources }) => ({
        path: pathOf(group, version),
        version: resources.map((resource) => `${resource.plural}/${resource.custom?.revision ?? ''}`).join(),
      }));
      const theirs = extensions
        .described()
        .flatMap((described) =>
          described.openApi === undefined
            ? []
            : [{ path: extensionPath(described), version: JSON.stringify(described.openApi) }],
        );
      return openApiV3Index([...indexed, ...theirs]);
    }
    const found = versions().find(({ group, version }) => path === `/openapi/v3/${pathOf(group, version)}`);
    if (found !== undefined) return openApiV3(found, found.resources.map(toOpenApiResource));
    return extensions.described().find((described) => path === `/openapi/v3/${extensionPath(described)}`)?.openApi;
  };

  return {
    document: (path) => {
      const current = `${registry.revision()}/${extensions.revision()}`;
      if (revision !== current) {
        revision = current;
        documents = new Map();
      }
      const known = documents.get(path) ?? make(path);
      if (known !== undefined) documents.set(path, known);
      return known;
    },
  };
};

// The protobuf form of the OpenAPI v2 document, which kubectl requests only for a kind that is not in v3. It is empty: every kind is
// in v3, so what kubectl searches for here does not exist.

/** The requested media type, and the returned one. */
export const protobufV2Accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
export const protobufV2Type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

const text = (number: number, value: Buffer | string): Buffer => {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
};

/** `swagger`, and `info` with title and version; each is shorter than 128 bytes. */
export const emptyProtobufV2 = (): Buffer =>
  Buffer.concat([text(1, '2.0'), text(2, Buffer.concat([text(1, 'Kubernetes'), text(2, 'v1')]))]);
