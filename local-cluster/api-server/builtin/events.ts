// Events have two forms in one storage: core/v1, which is stored, and events.k8s.io/v1.
import { type Cause, invalid, required } from '../schema/cause.ts';
import { qualifiedName } from '../objects/names.ts';
import { type ApiObject, type Fields, fieldsAt, omit, textAt } from '../objects/object.ts';
import type { Strategy } from '../registry/resource.ts';
import { plainStrategy } from './define.ts';

/** Name in core/v1 → name in events.k8s.io/v1. */
const names: Readonly<Record<string, string>> = {
  involvedObject: 'regarding',
  message: 'note',
  source: 'deprecatedSource',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  reportingComponent: 'reportingController',
};
const reversed = Object.fromEntries(Object.entries(names).map(([core, other]) => [other, core]));

const rename = (event: ApiObject, table: Readonly<Record<string, string>>): ApiObject =>
  Object.fromEntries(Object.entries(event).map(([key, value]) => [table[key] ?? key, value])) as ApiObject;

const optional = ['reportingController', 'reportingInstance', 'deprecatedFirstTimestamp', 'deprecatedLastTimestamp'];

const omitEmpty = (event: ApiObject): ApiObject =>
  omit(event, ...optional.filter((field) => event[field] === '' || event[field] === null)) as ApiObject;

const selectable = (event: ApiObject): Record<string, string> => {
  const key = event['regarding'] === undefined ? 'involvedObject' : 'regarding';
  const about = fieldsAt(event, key);
  const fields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];
  const of = (object: Fields, field: string) => textAt(object, field) ?? '';
  const controller = textAt(event, 'reportingComponent') ?? textAt(event, 'reportingController') ?? '';
  const source = of(fieldsAt(event, event['source'] === undefined ? 'deprecatedSource' : 'source'), 'component');
  return {
    ...Object.fromEntries(
      fields.flatMap((field) => [
        [`involvedObject.${field}`, of(about, field)],
        [`regarding.${field}`, of(about, field)],
      ]),
    ),
    reason: of(event, 'reason'),
    type: of(event, 'type'),
    reportingComponent: controller,
    reportingController: controller,
    source: source === '' ? controller : source,
  };
};

/** An event is in the namespace of the object it is about. */
const namespaceCauses = (event: ApiObject, field: string): Cause[] => {
  const about = textAt(fieldsAt(event, field), 'namespace') ?? '';
  const own = event.metadata.namespace ?? '';
  if (about === own || (about === '' && own === 'default')) return [];
  return [invalid(`${field}.namespace`, about, 'does not match event.namespace')];
};

/** Fields that exist in every event, set or not; they have no owner. */
const fillCore = (event: ApiObject): void => {
  event['source'] ??= {};
  event['firstTimestamp'] ??= null;
  event['lastTimestamp'] ??= null;
  event['eventTime'] ??= null;
  event['reportingComponent'] ??= '';
  event['reportingInstance'] ??= '';
};

export const coreEventStrategy: Strategy = {
  ...plainStrategy,
  createsOnUpdate: true,
  prepareCreate: (event) => fillCore(event),
  prepareUpdate: (event) => fillCore(event),
  validate: (event) => namespaceCauses(event, 'involvedObject'),
  selectable,
};

const types = ['Normal', 'Warning'];

const textCauses = (event: ApiObject, field: string): Cause[] =>
  (textAt(event, field) ?? '') === '' ? [required(field)] : [];

export const eventStrategy: Strategy = {
  ...plainStrategy,
  createsOnUpdate: true,
  toStorage: (event) => {
    const stored = rename(event, reversed);
    fillCore(stored);
    return stored;
  },
  fromStorage: (event) => omitEmpty(rename(event, names)),
  validate: (event) => {
    if (event['deprecatedFirstTimestamp'] !== undefined && event['deprecatedFirstTimestamp'] !== null) return [];
    return [
      ...namespaceCauses(event, 'regarding'),
      ...(event['eventTime'] === undefined || event['eventTime'] === null ? [required('eventTime')] : []),
      ...textCauses(event, 'reportingController'),
      ...qualifiedName(textAt(event, 'reportingController') ?? '').map((fault) =>
        invalid('reportingController', textAt(event, 'reportingController') ?? '', fault),
      ),
      ...['reportingInstance', 'action', 'reason'].flatMap((field) => textCauses(event, field)),
      ...(types.includes(textAt(event, 'type') ?? '')
        ? []
        : [invalid('type', '', `has invalid value: ${textAt(event, 'type') ?? ''}`)]),
    ];
  },
  selectable,
};
