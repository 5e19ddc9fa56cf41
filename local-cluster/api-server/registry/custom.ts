// Creates the resources of a CustomResourceDefinition, one for each served version.
import { isSame } from '../objects/equal.ts';
import { dnsSubdomain } from '../objects/names.ts';
import { type ApiObject, type Fields, fieldsAt, isFields, listAt, textAt, toText } from '../objects/object.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { compileJsonPath } from '../tables/json-path.ts';
import { customShape } from '../tables/columns.ts';
import {
  type CustomPart,
  type Resource,
  type ScalePaths,
  type Strategy,
  type Subresource,
  collectionOf,
  groupVersion,
} from './resource.ts';
import { compareVersions } from './resource.ts';

const changing = ['get', 'patch', 'update'];
const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

/** Everything except metadata, and except the status if it has its own endpoint. */
const wanted = (object: ApiObject, hasStatus: boolean): Fields => {
  const { metadata: _, apiVersion: __, kind: ___, status, ...rest } = object;
  return hasStatus ? rest : { ...rest, status };
};

const strategyOf = (hasStatus: boolean, selectableFields: readonly string[]): Strategy => {
  const paths = selectableFields.map((path) => [path.replace(/^\./, ''), compileJsonPath(path)] as const);
  return {
    nameRule: dnsSubdomain,
    hasStatus,
    hasGeneration: true,
    needsVersion: true,
    bumpsGeneration: (object, old) => !isSame(wanted(object, hasStatus), wanted(old, hasStatus)),
    prepareCreate: (object) => {
      if (hasStatus) delete object['status'];
    },
    selectable: (object) => Object.fromEntries(paths.map(([field, find]) => [field, toText(find(object)[0])])),
  };
};

const subresourcesOf = (version: Fields, kind: string): Subresource[] => {
  const declared = fieldsAt(version, 'subresources');
  return [
    ...(declared['status'] === undefined ? [] : [{ name: 'status', kind, verbs: changing }]),
    ...(declared['scale'] === undefined
      ? []
      : [{ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: changing }]),
  ];
};

const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** The most stable served version that is not deprecated, as the recommended one. */
const advised = (crd: ApiObject, than: string): string | undefined => {
  const spec = fieldsAt(crd, 'spec');
  const names = listAt(spec, 'versions')
    .filter((item) => item['served'] === true && item['deprecated'] !== true)
    .map((item) => textAt(item, 'name') ?? '')
    .filter((name) => compareVersions(name, than) < 0)
    .toSorted(compareVersions);
  return names[0] === undefined ? undefined : groupVersion(textAt(spec, 'group') ?? '', names[0]);
};

const deprecationOf = (crd: ApiObject, version: Fields, apiVersion: string, kind: string): string | undefined => {
  if (version['deprecated'] !== true) return undefined;
  const better = advised(crd, textAt(version, 'name') ?? '');
  const own = textAt(version, 'deprecationWarning');
  if (own !== undefined) return own;
  return `${apiVersion} ${kind} is deprecated${better === undefined ? '' : `; use ${better} ${kind}`}`;
};

const customPart = (crd: ApiObject, version: Fields, apiVersion: string, kind: string): CustomPart => ({
  crdName: crd.metadata.name ?? '',
  revision: `${crd.metadata.uid ?? ''}/${crd.metadata.generation ?? 0}`,
  deprecation: deprecationOf(crd, version, apiVersion, kind),
  scale: fieldsAt(version, 'subresources')['scale'] as ScalePaths | undefined,
  selectableFields: listAt(version, 'selectableFields').map((field) => textAt(field, 'jsonPath') ?? ''),
});

/** The accepted names; a definition with conflicting names is not served. */
const toResource = (crd: ApiObject, version: Fields): Resource => {
  const spec = fieldsAt(crd, 'spec');
  const names = fieldsAt(spec, 'names');
  const group = textAt(spec, 'group') ?? '';
  const plural = textAt(names, 'plural') ?? '';
  const kind = textAt(names, 'kind') ?? '';
  const name = textAt(version, 'name') ?? '';
  const stored = listAt(spec, 'versions').find((item) => item['storage'] === true) ?? version;
  const custom = customPart(crd, version, groupVersion(group, name), kind);
  const schema = fieldsAt(version, 'schema')['openAPIV3Schema'];
  const hasStatus = fieldsAt(version, 'subresources')['status'] !== undefined;
  return {
    group,
    version: name,
    plural,
    singular: textAt(names, 'singular') ?? kind.toLowerCase(),
    kind,
    listKind: textAt(names, 'listKind') ?? `${kind}List`,
    namespaced: spec['scope'] !== 'Cluster',
    shortNames: strings(names['shortNames']),
    categories: strings(names['categories']),
    verbs,
    subresources: subresourcesOf(version, kind),
    collection: collectionOf(group, plural),
    storageApiVersion: groupVersion(group, textAt(stored, 'name') ?? name),
    custom,
    schema: () => (isFields(schema) ? (schema as JsonSchema) : undefined),
    strategy: strategyOf(hasStatus, custom.selectableFields),
    table: customShape(listAt(version, 'additionalPrinterColumns')),
  };
};

export const isEstablished = (crd: ApiObject): boolean =>
  listAt(fieldsAt(crd, 'status'), 'conditions').some(
    (condition) => condition['type'] === 'Established' && condition['status'] === 'True',
  );

export const customResources = (crd: ApiObject): Resource[] =>
  listAt(fieldsAt(crd, 'spec'), 'versions')
    .filter((version) => version['served'] === true)
    .map((version) => toResource(crd, version));
