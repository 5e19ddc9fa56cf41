// The names of types in OpenAPI documents: `io.k8s.api.batch.v1.Job`. Called by the other openapi files.

import { builtinSchema, typeNameOf } from './builtin.ts';
import { valuesOf, type JsonSchema } from './json-schema.ts';

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const metaTypes = new Set([
  'Condition',
  'DeleteOptions',
  'FieldSelectorRequirement',
  'LabelSelector',
  'LabelSelectorRequirement',
  'ListMeta',
  'ManagedFieldsEntry',
  'ObjectMeta',
  'OwnerReference',
  'Preconditions',
  'Status',
  'StatusCause',
  'StatusDetails',
]);

const coreKinds = [
  'Pod',
  'Service',
  'PersistentVolumeClaim',
  'PersistentVolume',
  'ConfigMap',
  'Secret',
  'Namespace',
  'Node',
  'Event',
  'ServiceAccount',
  'Endpoints',
  'ReplicationController',
  'ResourceQuota',
  'LimitRange',
];

const collect = (schema: JsonSchema | undefined, found: Set<string>): void => {
  if (schema === undefined) return;
  const type = schema['x-bullion-type'];
  if (type !== undefined) {
    if (found.has(type)) return;
    found.add(type);
  }
  collect(schema.items, found);
  collect(valuesOf(schema), found);
  for (const property of Object.values(schema.properties ?? {})) collect(property, found);
};

let coreModels: ReadonlySet<string> | undefined;

/** Models of the core group that others refer to: the types of its kinds. */
const coreTypes = (): ReadonlySet<string> => {
  if (coreModels !== undefined) return coreModels;
  const found = new Set<string>();
  for (const kind of coreKinds) collect(builtinSchema('', 'v1', kind), found);
  coreModels = found;
  return found;
};

const packages: Readonly<Record<string, string>> = {
  '': 'io.k8s.api.core',
  'apiextensions.k8s.io': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions',
  'apiregistration.k8s.io': 'io.k8s.kube-aggregator.pkg.apis.apiregistration',
  'rbac.authorization.k8s.io': 'io.k8s.api.rbac',
  'internal.apiserver.k8s.io': 'io.k8s.api.apiserverinternal',
};

/** The package of a group's built-in types: `io.k8s.api.batch`. */
const packageOf = (group: string): string => packages[group] ?? `io.k8s.api.${group.replace(/\..*$/, '')}`;

/** The name of a model within the document of a group and version. */
export const modelName = (model: string, group: string, version: string): string => {
  const type = typeNameOf(model);
  if (metaTypes.has(type)) return `${metaPackage}.${type}`;
  if (coreTypes().has(model)) return `${packageOf('')}.v1.${type}`;
  return `${packageOf(group)}.${version}.${type}`;
};

/** The name of a custom kind: the group reversed, then version and kind. */
export const customName = (group: string, version: string, kind: string): string =>
  [...group.split('.').toReversed(), version, kind].join('.');

/** Types defined once and referred to by all fields that have them. */
export const wellKnownTypes = {
  quantity: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
  intOrString: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
  time: `${metaPackage}.Time`,
  fields: `${metaPackage}.FieldsV1`,
  patch: `${metaPackage}.Patch`,
  deleteOptions: `${metaPackage}.DeleteOptions`,
  status: `${metaPackage}.Status`,
} as const;
