// An APIService in the aggregator: the server of a group and version, and whether it is available.
import { type ApiObject, type Fields, fieldsAt, listAt, numberAt, textAt } from '../objects/object.ts';
import type { Store } from '../store/store.ts';

export const apiServiceCollection = 'apiservices.apiregistration.k8s.io';

export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

export interface Extension {
  /** Name of the APIService. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly service: ServiceReference;
  /** PEM; undefined: the system's authorities. */
  readonly caBundle: string | undefined;
  readonly skipsVerification: boolean;
  readonly isAvailable: boolean;
}

/** `undefined` for an APIService without a service: this server answers for it. */
export const toExtension = (object: ApiObject): Extension | undefined => {
  const spec = fieldsAt(object, 'spec');
  if (spec['service'] === undefined) return undefined;
  const service = fieldsAt(spec, 'service');
  const bundle = textAt(spec, 'caBundle');
  return {
    name: object.metadata.name ?? '',
    group: textAt(spec, 'group') ?? '',
    version: textAt(spec, 'version') ?? '',
    service: {
      namespace: textAt(service, 'namespace') ?? '',
      name: textAt(service, 'name') ?? '',
      port: numberAt(service, 'port') ?? 443,
    },
    caBundle: bundle === undefined || bundle === '' ? undefined : Buffer.from(bundle, 'base64').toString(),
    skipsVerification: spec['insecureSkipTLSVerify'] === true,
    isAvailable: conditionOf(object)?.['status'] === 'True',
  };
};

export const conditionOf = (object: ApiObject): Fields | undefined =>
  listAt(fieldsAt(object, 'status'), 'conditions').find((condition) => condition['type'] === 'Available');

export const extensionOf = (store: Store, group: string, version: string): Extension | undefined => {
  const entry = store.get({ collection: apiServiceCollection, namespace: '', name: `${version}.${group}` });
  return entry === undefined ? undefined : toExtension(entry.object());
};

export const allExtensions = (store: Store): readonly Extension[] =>
  store
    .page({ collection: apiServiceCollection, limit: 1000 })
    .entries.map((entry) => toExtension(entry.object()))
    .filter((extension) => extension !== undefined);
