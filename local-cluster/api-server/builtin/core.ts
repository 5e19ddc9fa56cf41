// Namespaces, secrets, config maps, services, service accounts, nodes.
import { type Cause, forbidden, invalid, required } from '../schema/cause.ts';
import { isSame } from '../objects/equal.ts';
import { dnsLabel } from '../objects/names.ts';
import { type ApiObject, ensureFields, fieldsAt, listAt, setDefault, textAt, toText } from '../objects/object.ts';
import type { Json } from '../schema/json.ts';
import type { Strategy, StrategyContext } from '../registry/resource.ts';
import { plainStrategy, selectPaths, specOf, withStatus } from './define.ts';

const nameLabel = 'kubernetes.io/metadata.name';

export const namespaceStrategy: Strategy = withStatus({
  nameRule: dnsLabel,
  defaults: (namespace) => {
    const name = namespace.metadata.name ?? '';
    if (name !== '') namespace.metadata.labels = { ...namespace.metadata.labels, [nameLabel]: name };
  },
  prepareCreate: (namespace) => {
    const name = namespace.metadata.name ?? '';
    namespace.metadata.labels = { ...namespace.metadata.labels, [nameLabel]: name };
    namespace['spec'] = { finalizers: ['kubernetes'] };
    namespace['status'] = { phase: 'Active' };
  },
  prepareUpdate: (namespace, old) => {
    namespace['spec'] = old['spec'];
  },
  selectable: selectPaths('status.phase'),
});

const keyPattern = /^[-._a-zA-Z0-9]+$/;
const keyMessage =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

const keyFault = (key: string): string => {
  if (!keyPattern.test(key)) return keyMessage;
  if (key === '.' || key === '..') return `must not be '${key}'`;
  return key.startsWith('..') ? `must not start with '..'` : '';
};

const keyCauses = (object: ApiObject, field: string): Cause[] =>
  Object.keys(fieldsAt(object, field))
    .map((key) => [key, keyFault(key)] as const)
    .filter(([, fault]) => fault !== '')
    .map(([key, fault]) => invalid(`${field}[${key}]`, key, fault));

const immutableMessage = 'field is immutable when `immutable` is set';

const immutableCauses = (object: ApiObject, old: ApiObject, fields: readonly string[]): Cause[] => {
  if (old['immutable'] !== true) return [];
  const causes = object['immutable'] === true ? [] : [forbidden('immutable', immutableMessage)];
  return [
    ...causes,
    ...fields.filter((field) => !isSame(object[field], old[field])).map((field) => forbidden(field, immutableMessage)),
  ];
};

export const configMapStrategy: Strategy = {
  ...plainStrategy,
  metadataChecks: 4,
  validate: (map) => [
    ...keyCauses(map, 'data'),
    ...keyCauses(map, 'binaryData'),
    ...Object.keys(fieldsAt(map, 'data'))
      .filter((key) => Object.hasOwn(fieldsAt(map, 'binaryData'), key))
      .map((key) => invalid(`data[${key}]`, key, `duplicate of key present in binaryData`)),
  ],
  validateUpdate: (map, old) => immutableCauses(map, old, ['data', 'binaryData']),
};

const encode = (text: unknown): string => Buffer.from(String(text)).toString('base64');

const needed: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
};

export const secretStrategy: Strategy = {
  ...plainStrategy,
  defaults: (secret) => {
    setDefault(secret, 'type', 'Opaque');
    if (secret['stringData'] === undefined) return;
    const data = ensureFields(secret, 'data');
    for (const [key, value] of Object.entries(fieldsAt(secret, 'stringData'))) data[key] = encode(value);
    delete secret['stringData'];
  },
  validate: (secret) => [
    ...keyCauses(secret, 'data'),
    ...(needed[textAt(secret, 'type') ?? ''] ?? [])
      .filter((key) => fieldsAt(secret, 'data')[key] === undefined)
      .map((key) => required(`data[${key}]`)),
  ],
  validateUpdate: (secret, old) => [
    ...(secret['type'] === old['type']
      ? []
      : [invalid('type', (secret['type'] ?? null) as Json, 'field is immutable')]),
    ...immutableCauses(secret, old, ['data']),
  ],
  selectable: selectPaths('type'),
};

export const serviceAccountStrategy: Strategy = { ...plainStrategy, returnsDeleted: true };

const addressRange = '10.0.0.';

/** A free address of 10.0.0.0/24, lowest first. */
const freeAddress = (context: StrategyContext): string => {
  const taken = new Set(context.all('services').map((service) => specOf(service)['clusterIP']));
  const free = Array.from({ length: 253 }, (_, index) => `${addressRange}${index + 2}`).find((ip) => !taken.has(ip));
  return free ?? 'None';
};

const prepareService = (service: ApiObject, context: StrategyContext): void => {
  const spec = specOf(service);
  service['status'] = { loadBalancer: {} };
  if (spec['type'] === 'ExternalName') return;
  const address = textAt(spec, 'clusterIP') ?? '';
  spec['clusterIP'] = address === '' ? freeAddress(context) : address;
  spec['clusterIPs'] = [spec['clusterIP']];
  setDefault(spec, 'ipFamilies', ['IPv4']);
  setDefault(spec, 'ipFamilyPolicy', 'SingleStack');
};

export const serviceStrategy: Strategy = withStatus({
  nameRule: dnsLabel,
  returnsDeleted: true,
  createsOnUpdate: true,
  defaults: (service) => {
    const spec = ensureFields(service, 'spec');
    setDefault(spec, 'sessionAffinity', 'None');
    setDefault(spec, 'type', 'ClusterIP');
    if (spec['type'] !== 'ExternalName') setDefault(spec, 'internalTrafficPolicy', 'Cluster');
    for (const port of listAt(spec, 'ports')) {
      setDefault(port, 'protocol', 'TCP');
      setDefault(port, 'targetPort', port['port']);
    }
  },
  prepareCreate: prepareService,
  prepareUpdate: (service, old) => {
    const spec = specOf(service);
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'])
      setDefault(spec, field, specOf(old)[field]);
  },
  validate: (service) => {
    const spec = specOf(service);
    const headless = spec['clusterIP'] === 'None' || spec['type'] === 'ExternalName';
    return listAt(spec, 'ports').length === 0 && !headless ? [required('spec.ports')] : [];
  },
  validateUpdate: (service, old) => {
    const [now, before] = [specOf(service)['clusterIP'], specOf(old)['clusterIP']];
    if (before === undefined || isSame(now, before)) return [];
    return [invalid('spec.clusterIPs[0]', [now ?? null] as Json, 'may not change once set')];
  },
  selectable: selectPaths('spec.clusterIP', 'spec.type'),
});

export const endpointsStrategy: Strategy = { ...plainStrategy, createsOnUpdate: true };

export const nodeStrategy: Strategy = {
  ...plainStrategy,
  hasStatus: true,
  prepareCreate: (node) => {
    ensureFields(node, 'spec');
    ensureFields(node, 'status');
  },
  selectable: (node) => ({ 'spec.unschedulable': toText(specOf(node)['unschedulable'], 'false') }),
};
