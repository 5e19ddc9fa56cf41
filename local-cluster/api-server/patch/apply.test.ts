import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinSchema } from '../schema/builtin.ts';
import { isObject, type Json, type JsonObject } from '../schema/json.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { applyConfig, resetFieldsOf, trackUpdate, type WriteContext } from './apply.ts';

const schemaOf = (group: string, kind: string): JsonSchema => {
  const schema = builtinSchema(group, 'v1', kind);
  if (schema === undefined) throw new Error(`no schema of ${kind}`);
  return schema;
};

const at = (seconds: number): Date => new Date(Date.UTC(2024, 0, 1, 0, 0, seconds));

const contextOf = (manager: string, change: Partial<WriteContext> = {}): WriteContext => ({
  schema: schemaOf('', 'ConfigMap'),
  manager,
  apiVersion: 'v1',
  subresource: '',
  now: at(0),
  resetFields: [],
  ...change,
});

const configMap = (data: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'default' },
  data,
});

const applied = (
  context: WriteContext,
  live: JsonObject | undefined,
  config: JsonObject,
  force = false,
): JsonObject => {
  const outcome = applyConfig(context, live, config, { force });
  if (outcome.kind === 'refused') throw new Error(outcome.message);
  return outcome.object;
};

const refusal = (context: WriteContext, live: JsonObject | undefined, config: JsonObject): string => {
  const outcome = applyConfig(context, live, config, { force: false });
  return outcome.kind === 'refused' ? `${outcome.code}: ${outcome.message}` : 'applied';
};

/** The owners of fields, without times. */
const owners = (object: JsonObject): Json => {
  const metadata = object['metadata'];
  const entries = isObject(metadata) ? metadata['managedFields'] : [];
  return Object.fromEntries(
    (Array.isArray(entries) ? (entries as JsonObject[]) : []).map((entry) => [
      `${entry['manager'] as string}/${entry['operation'] as string}`,
      entry['fieldsV1'] ?? null,
    ]),
  );
};

describe('applyConfig', () => {
  it('creates an object owned by the applier', () => {
    const object = applied(contextOf('me'), undefined, configMap({ k: 'v' }));
    expect(object).toEqual({
      ...configMap({ k: 'v' }),
      metadata: {
        name: 'a',
        namespace: 'default',
        managedFields: [
          {
            manager: 'me',
            operation: 'Apply',
            apiVersion: 'v1',
            time: '2024-01-01T00:00:00Z',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { 'f:k': {} } },
          },
        ],
      },
    });
  });

  it('rejects a change of a field of another manager', () => {
    const live = applied(contextOf('one'), undefined, configMap({ k: 'v' }));
    expect(refusal(contextOf('two'), live, configMap({ k: 'w' }))).toBe(
      '409: Apply failed with 1 conflict: conflict with "one": .data.k',
    );
  });

  it('names the version of a manager that updated', () => {
    const live = trackUpdate(contextOf('kubectl-create'), undefined, configMap({ k: 'v', l: 'v' }));
    expect(refusal(contextOf('two'), live, configMap({ k: 'w', l: 'w' }))).toBe(
      '409: Apply failed with 2 conflicts: conflicts with "kubectl-create" using v1:\n- .data.k\n- .data.l',
    );
    expect(applyConfig(contextOf('two'), live, configMap({ k: 'w' }), { force: false })).toMatchObject({
      reason: 'Conflict',
      causes: [
        { reason: 'FieldManagerConflict', message: 'conflict with "kubectl-create" using v1', field: '.data.k' },
      ],
    });
  });

  it('takes a field over when forced', () => {
    const live = applied(contextOf('one'), undefined, configMap({ k: 'v', own: '1' }));
    const object = applied(contextOf('two'), live, configMap({ k: 'w' }), true);
    expect(object['data']).toEqual({ k: 'w', own: '1' });
    expect(owners(object)).toEqual({
      'one/Apply': { 'f:data': { 'f:own': {} } },
      'two/Apply': { 'f:data': { 'f:k': {} } },
    });
  });

  it('shares a field that two managers apply with the same value, and keeps it while one does', () => {
    const one = applied(contextOf('one'), undefined, configMap({ k: 'v' }));
    const both = applied(contextOf('two'), one, configMap({ k: 'v' }));
    expect(owners(both)).toEqual({
      'one/Apply': { 'f:data': { 'f:k': {} } },
      'two/Apply': { 'f:data': { 'f:k': {} } },
    });
    const left = applied(contextOf('two'), both, configMap({}));
    expect(left['data']).toEqual({ k: 'v' });
    expect(owners(left)).toMatchObject({ 'one/Apply': { 'f:data': { 'f:k': {} } } });
  });

  it('removes what the manager no longer applies', () => {
    const live = applied(contextOf('me'), undefined, configMap({ k: 'v', gone: 'x' }));
    const object = applied(contextOf('me'), live, configMap({ k: 'v' }));
    expect(object['data']).toEqual({ k: 'v' });
  });

  it('keeps what an updater owns when the applier no longer applies it', () => {
    const live = applied(contextOf('me'), undefined, configMap({ k: 'v' }));
    const updated = trackUpdate(contextOf('you'), live, { ...live, data: { k: 'w' } });
    const object = applied(contextOf('me'), updated, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } });
    expect(object['data']).toEqual({ k: 'w' });
  });

  it('treats what existed before the first apply as owned', () => {
    const untracked = { ...configMap({ k: 'v' }), metadata: { name: 'a', uid: '1' } };
    expect(refusal(contextOf('me'), untracked, configMap({ k: 'w' }))).toBe(
      '409: Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k',
    );
  });

  it('rejects a different version, managed fields and unknown fields', () => {
    expect(refusal(contextOf('me', { apiVersion: 'v2' }), undefined, configMap({}))).toBe(
      '400: Incorrect version specified in apply patch. Specified patch version: v1, expected: v2',
    );
    const managed = { ...configMap({}), metadata: { name: 'a', managedFields: [] } };
    expect(refusal(contextOf('me'), undefined, managed)).toBe('400: metadata.managedFields must be nil');
    expect(refusal(contextOf('me'), undefined, { ...configMap({}), foo: 1 })).toBe(
      '500: failed to create typed patch object (default/a; /v1, Kind=ConfigMap): .foo: field not declared in schema',
    );
  });

  it('lets kubectl take over what it applied on the client side', () => {
    const stated = configMap({ k: 'v' });
    const live = trackUpdate(contextOf('kubectl-client-side-apply'), undefined, {
      ...stated,
      metadata: {
        name: 'a',
        namespace: 'default',
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(stated) },
      },
    });
    expect(applied(contextOf('kubectl'), live, configMap({ k: 'w' }))['data']).toEqual({ k: 'w' });
  });
});

describe('lists', () => {
  const pod = (change: Partial<WriteContext> = {}): WriteContext =>
    contextOf('me', { schema: schemaOf('', 'Pod'), ...change });
  const withContainers = (...containers: JsonObject[]): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers },
  });

  it('of type map are owned per item', () => {
    const object = applied(
      pod(),
      undefined,
      withContainers({ name: 'a', image: 'x', args: ['1'], ports: [{ containerPort: 80 }] }),
    );
    expect(owners(object)).toEqual({
      'me/Apply': {
        'f:spec': {
          'f:containers': {
            'k:{"name":"a"}': {
              '.': {},
              'f:args': {},
              'f:image': {},
              'f:name': {},
              'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
            },
          },
        },
      },
    });
  });

  it('of type map are merged by key, and lose the items that are no longer applied', () => {
    const one = applied(pod(), undefined, withContainers({ name: 'a' }, { name: 'b' }));
    const two = applied(pod({ manager: 'you' }), one, withContainers({ name: 'c' }));
    const three = applied(pod(), two, withContainers({ name: 'b' }));
    expect(three['spec']).toEqual({ containers: [{ name: 'b' }, { name: 'c' }] });
  });

  it('name conflicting items by their key', () => {
    const one = applied(pod(), undefined, withContainers({ name: 'a', image: 'x' }));
    expect(refusal(pod({ manager: 'you' }), one, withContainers({ name: 'a', image: 'y' }))).toBe(
      '409: Apply failed with 1 conflict: conflict with "me": .spec.containers[name="a"].image',
    );
  });

  it('reject a repeated key', () => {
    expect(refusal(pod(), undefined, withContainers({ name: 'a' }, { name: 'a' }))).toBe(
      '500: failed to create typed patch object (/p; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name="a"]',
    );
  });

  it('of type set are owned per value', () => {
    const object = applied(contextOf('me'), undefined, {
      ...configMap({}),
      metadata: { name: 'a', finalizers: ['x/y'] },
    });
    expect(owners(object)).toEqual({
      'me/Apply': { 'f:data': {}, 'f:metadata': { 'f:finalizers': { 'v:"x/y"': {} } } },
    });
  });
});

describe('trackUpdate', () => {
  it('makes the creator the owner of a created object', () => {
    const object = trackUpdate(contextOf('kubectl-create', { now: at(5) }), undefined, configMap({ k: 'v' }));
    expect(object['metadata']).toEqual({
      name: 'a',
      namespace: 'default',
      managedFields: [
        {
          manager: 'kubectl-create',
          operation: 'Update',
          apiVersion: 'v1',
          time: '2024-01-01T00:00:05Z',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:data': { '.': {}, 'f:k': {} } },
        },
      ],
    });
  });

  it('moves changed fields to the manager that changed them and removes managers that own nothing', () => {
    const live = trackUpdate(contextOf('one'), undefined, configMap({ k: 'v' }));
    const changed = trackUpdate(contextOf('two'), live, { ...live, data: { k: 'w' } });
    expect(owners(changed)).toEqual({
      'one/Update': { 'f:data': {} },
      'two/Update': { 'f:data': { 'f:k': {} } },
    });
  });

  it('does not change managers and times when nothing changed', () => {
    const live = trackUpdate(contextOf('one'), undefined, configMap({ k: 'v' }));
    expect(trackUpdate(contextOf('two', { now: at(9) }), live, live)).toEqual(live);
  });

  it('separates the main resource and its status', () => {
    const job = schemaOf('batch', 'Job');
    const context = contextOf('me', { schema: job, apiVersion: 'batch/v1' });
    const base = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec: { parallelism: 1 } };
    const live = trackUpdate({ ...context, resetFields: [['status']] }, undefined, base);
    const reset = resetFieldsOf({ custom: false, hasStatus: true, subresource: 'status' });
    const next = trackUpdate({ ...context, manager: 'controller', subresource: 'status', resetFields: reset }, live, {
      ...live,
      status: { active: 1 },
    });
    expect(next['metadata']).toMatchObject({
      managedFields: [
        { manager: 'controller', subresource: 'status', fieldsV1: { 'f:status': { 'f:active': {} } } },
        { manager: 'me', fieldsV1: { 'f:spec': { 'f:parallelism': {} } } },
      ],
    });
  });

  it('does not treat structures that every object of a built-in kind has as set by its creator', () => {
    const context = contextOf('me', {
      schema: schemaOf('coordination.k8s.io', 'Lease'),
      apiVersion: 'coordination.k8s.io/v1',
    });
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'l' },
      spec: { holderIdentity: 'h' },
    };
    expect(owners(trackUpdate(context, undefined, lease))).toEqual({
      'me/Update': { 'f:spec': { 'f:holderIdentity': {} } },
    });
  });

  it('removes all managers when the writer requests it', () => {
    const live = trackUpdate(contextOf('one'), undefined, configMap({ k: 'v' }));
    const cleared = { ...live, metadata: { name: 'a', namespace: 'default', managedFields: [{}] } };
    expect(owners(trackUpdate(contextOf('two'), live, cleared))).toEqual({});
  });

  it('merges the oldest updaters when there are more than ten', () => {
    const last = Array.from({ length: 12 }, (_, index) => index).reduce<JsonObject | undefined>(
      (live, index) =>
        trackUpdate(contextOf(`m${index}`, { now: at(index) }), live, {
          ...(live ?? configMap({})),
          data: { ...(live?.['data'] as JsonObject | undefined), [`k${index}`]: 'v' },
        }),
      undefined,
    );
    const names = Object.keys(owners(last ?? {}) as JsonObject);
    expect(names).toHaveLength(10);
    expect(names).toContain('ancient-changes/Update');
  });
});

const data = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom('1', '2'), { minKeys: 1 });
const managers = fc.constantFrom('one', 'two', 'three');

describe('properties', () => {
  it('applying the same configuration again changes nothing and has no conflicts', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(managers, data), { minLength: 1, maxLength: 6 }), (steps) => {
        let live: JsonObject | undefined;
        for (const [manager, content] of steps) {
          live = applied(contextOf(manager), live, configMap(content), true);
          expect(applied(contextOf(manager, { now: at(30) }), live, configMap(content))).toEqual(live);
        }
      }),
    );
  });

  it('after a forced apply the object contains all applied values', () => {
    fc.assert(
      fc.property(data, data, managers, managers, (first, second, one, two) => {
        const live = applied(contextOf(one), undefined, configMap(first));
        expect(applied(contextOf(two), live, configMap(second), true)['data'] ?? {}).toMatchObject(second);
      }),
    );
  });

  it('every value of the object has an owner after any mix of writes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(managers, data, fc.boolean()), { minLength: 1, maxLength: 6 }), (steps) => {
        let live: JsonObject | undefined;
        for (const [manager, content, isApply] of steps)
          live = isApply
            ? applied(contextOf(manager), live, configMap(content), true)
            : trackUpdate(contextOf(manager), live, { ...(live ?? configMap({})), data: content });
        const text = JSON.stringify(owners(live ?? {}));
        for (const key of Object.keys((live?.['data'] as JsonObject | undefined) ?? {}))
          expect(text).toContain(`"f:${key}"`);
      }),
    );
  });
});
