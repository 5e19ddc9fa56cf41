// Events exist in two shapes over one storage: core/v1, which is stored, and events.k8s.io/v1.
import { type Cause, invalid, required } from '../schema/cause.ts';
import { type ApiObject, type Fields, fieldsAt, textAt } from '../objects/object.ts';
import type { Strategy } from '../registry/resource.ts';
import { plainStrategy } from './strategy.ts';

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

/** An event lies in the namespace of what it is about. */
const namespaceCauses = (event: ApiObject, field: string): Cause[] => {
  const about = textAt(fieldsAt(event, field), 'namespace') ?? '';
  const own = event.metadata.namespace ?? '';
  if (about === own || (about === '' && own === 'default')) return [];
  return [invalid(`${field}.namespace`, about, 'does not match event.namespace')];
};

export const coreEventStrategy: Strategy = {
  ...plainStrategy,
  createsOnUpdate: true,
  defaults: (event) => {
    event['source'] ??= {};
    event['firstTimestamp'] ??= null;
    event['lastTimestamp'] ??= null;
    event['eventTime'] ??= null;
    event['reportingComponent'] ??= '';
    event['reportingInstance'] ??= '';
  },
  validate: (event) => namespaceCauses(event, 'involvedObject'),
  selectable,
};

export const eventStrategy: Strategy = {
  ...plainStrategy,
  createsOnUpdate: true,
  toStorage: (event) => rename(event, reversed),
  fromStorage: (event) => rename(event, names),
  validate: (event) => {
    if (event['deprecatedFirstTimestamp'] !== undefined && event['deprecatedFirstTimestamp'] !== null) return [];
    const needed = ['reportingController', 'reportingInstance', 'action', 'reason'].filter(
      (field) => (textAt(event, field) ?? '') === '',
    );
    return [
      ...namespaceCauses(event, 'regarding'),
      ...(event['eventTime'] === undefined || event['eventTime'] === null ? [required('eventTime')] : []),
      ...needed.map((field) => required(field)),
    ];
  },
  selectable,
};
