import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinSchema } from '../schema/builtin.ts';
import type { Json, JsonObject } from '../schema/json.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { applyStrategicMergePatch } from './strategic-merge.ts';

const schemaOf = (group: string, kind: string): JsonSchema => {
  const schema = builtinSchema(group, 'v1', kind);
  if (schema === undefined) throw new Error(`no schema of ${kind}`);
  return schema;
};
const pod = schemaOf('', 'Pod');
const deployment = schemaOf('apps', 'Deployment');

const patchPod = (spec: JsonObject, patch: Json): Json => {
  const outcome = applyStrategicMergePatch(pod, { spec }, { spec: patch });
  return outcome.kind === 'patched' ? (outcome.object['spec'] ?? null) : `${outcome.code}: ${outcome.message}`;
};

describe('applyStrategicMergePatch', () => {
  const cases: [string, JsonObject, Json, Json][] = [
    [
      'merges items by their key and inserts new ones at their position in the patch',
      {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '1' },
        ],
      },
      {
        containers: [
          { name: 'b', image: '2' },
          { name: 'c', image: '1' },
        ],
      },
      {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '2' },
          { name: 'c', image: '1' },
        ],
      },
    ],
    [
      'deletes an item by $patch: delete',
      { containers: [{ name: 'a' }, { name: 'b' }] },
      { containers: [{ $patch: 'delete', name: 'a' }] },
      { containers: [{ name: 'b' }] },
    ],
    [
      'replaces a list by $patch: replace',
      { containers: [{ name: 'a' }, { name: 'b' }] },
      { containers: [{ name: 'c' }, { $patch: 'replace' }] },
      { containers: [{ name: 'c' }] },
    ],
    [
      'replaces a map by $patch: replace',
      { securityContext: { runAsUser: 1, fsGroup: 2 } },
      { securityContext: { $patch: 'replace', fsGroup: 3 } },
      { securityContext: { fsGroup: 3 } },
    ],
    [
      'empties a map by $patch: delete',
      { securityContext: { fsGroup: 2 } },
      { securityContext: { $patch: 'delete' } },
      { securityContext: {} },
    ],
    [
      'replaces lists without a strategy',
      { containers: [{ name: 'a', args: ['1', '2'] }] },
      { containers: [{ name: 'a', args: ['3'] }] },
      { containers: [{ name: 'a', args: ['3'] }] },
    ],
    ['deletes a field by null', { nodeName: 'n', hostname: 'h' }, { nodeName: null }, { hostname: 'h' }],
    [
      'ignores null where nothing was',
      {},
      { securityContext: { fsGroup: null, runAsUser: 1 } },
      { securityContext: { runAsUser: 1 } },
    ],
    [
      "orders by $setElementOrder, the server's own items between",
      { containers: [{ name: 'a' }, { name: 'own' }, { name: 'b' }] },
      { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }], containers: [{ name: 'b', image: 'x' }] },
      { containers: [{ name: 'own' }, { name: 'b', image: 'x' }, { name: 'a' }] },
    ],
    [
      'keeps only what $retainKeys names',
      { volumes: [{ name: 'v', emptyDir: {} }] },
      { volumes: [{ $retainKeys: ['name', 'hostPath'], name: 'v', hostPath: { path: '/' } }] },
      { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
    ],
  ];
  it.each(cases)('%s', (_, spec, patch, expected) => {
    expect(patchPod(spec, patch)).toEqual(expected);
  });

  it('merges lists of scalars and deletes from them', () => {
    const object = { metadata: { finalizers: ['a/1', 'b/1', 'c/1'] } };
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': ['b/1'], finalizers: ['d/1'] } };
    expect(applyStrategicMergePatch(pod, object, patch)).toMatchObject({
      object: { metadata: { finalizers: ['d/1', 'a/1', 'c/1'] } },
    });
  });

  it('retains keys of a Deployment strategy', () => {
    const object = { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } };
    const patch = { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } };
    expect(applyStrategicMergePatch(deployment, object, patch)).toMatchObject({
      object: { spec: { strategy: { type: 'Recreate' } } },
    });
  });

  const refusals: [string, Json, string][] = [
    [
      'an item without its merge key',
      { containers: [{ image: 'x' }] },
      '500: map: map[image:x] does not contain declared merge key: name',
    ],
    ['an unknown directive', { $patch: 'frob' }, '500: unknown patch type: frob in map: map[$patch:frob]'],
    [
      '$retainKeys that miss a field',
      { securityContext: { $retainKeys: ['fsGroup'], runAsUser: 1 } },
      '400: invalid patch format of retainKeys',
    ],
  ];
  it.each(refusals)('rejects %s', (_, patch, expected) => {
    expect(patchPod({ containers: [{ name: 'a' }], securityContext: { fsGroup: 1 } }, patch)).toEqual(expected);
  });
});

/** A patch that turns one list of containers into another, as computed by kubectl. */
const diffContainers = (from: readonly string[], to: readonly string[]): JsonObject => ({
  '$setElementOrder/containers': to.map((name) => ({ name })),
  containers: [
    ...to.filter((name) => !from.includes(name)).map((name) => ({ name, image: name })),
    ...from.filter((name) => !to.includes(name)).map((name) => ({ $patch: 'delete', name })),
  ],
});

const namesList = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { maxLength: 5 });

describe('properties', () => {
  it('a patch computed from two lists turns one into the other, including the order', () => {
    fc.assert(
      fc.property(
        namesList,
        namesList.filter((names) => names.length > 0),
        (from, to) => {
          const containers = (names: readonly string[]): JsonObject[] => names.map((name) => ({ name, image: name }));
          expect(patchPod({ containers: containers(from) }, diffContainers(from, to))).toEqual({
            containers: containers(to),
          });
        },
      ),
    );
  });

  it('merging the same items is idempotent', () => {
    fc.assert(
      fc.property(namesList, namesList, (from, patch) => {
        const asItems = (names: readonly string[], image: string): JsonObject[] =>
          names.map((name) => ({ name, image }));
        const once = patchPod({ containers: asItems(from, '1') }, { containers: asItems(patch, '2') });
        expect(patchPod(once as JsonObject, { containers: asItems(patch, '2') })).toEqual(once);
      }),
    );
  });
});
