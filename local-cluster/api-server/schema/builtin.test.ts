import { describe, expect, it } from 'vitest';
import { builtinSchema, typeNameOf } from './builtin.ts';
import type { JsonSchema } from './json-schema.ts';
import { pruneObject } from './prune.ts';

const at = (schema: JsonSchema | undefined, ...path: string[]): JsonSchema | undefined =>
  path.reduce<JsonSchema | undefined>(
    (current, name) => (name === '[]' ? current?.items : current?.properties?.[name]),
    schema,
  );

const pod = (): JsonSchema | undefined => builtinSchema('', 'v1', 'Pod');

describe('builtinSchema', () => {
  it('has types, formats, required fields and descriptions', () => {
    const port = at(builtinSchema('', 'v1', 'Service'), 'spec', 'ports', '[]');
    expect(port?.required).toEqual(['port']);
    expect(at(port, 'port')).toMatchObject({ type: 'integer', format: 'int32' });
    expect(at(port, 'port')?.description).toContain('exposed by this service');
    expect(at(port, 'targetPort')).toMatchObject({ 'x-kubernetes-int-or-string': true });
    expect(at(port, 'protocol')?.default).toBe('TCP');
  });

  it('has the merge keys of lists', () => {
    expect(at(pod(), 'spec', 'containers')).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(at(pod(), 'spec', 'containers', '[]', 'args')).toMatchObject({ 'x-kubernetes-list-type': 'atomic' });
    expect(at(pod(), 'metadata', 'finalizers')).toMatchObject({ 'x-kubernetes-list-type': 'set' });
  });

  it('has atomic maps, and exceptions with separate owners', () => {
    expect(at(pod(), 'spec', 'nodeSelector')).toMatchObject({ 'x-kubernetes-map-type': 'atomic' });
    expect(at(builtinSchema('', 'v1', 'PersistentVolume'), 'spec', 'claimRef')).toMatchObject({
      'x-kubernetes-map-type': 'granular',
    });
    expect(at(builtinSchema('batch', 'v1', 'Job'), 'spec', 'selector')).toMatchObject({
      'x-kubernetes-map-type': 'atomic',
    });
  });

  it('supports recursive types', () => {
    const props = at(
      builtinSchema('apiextensions.k8s.io', 'v1', 'CustomResourceDefinition'),
      'spec',
      'versions',
      '[]',
      'schema',
      'openAPIV3Schema',
    );
    expect(at(props, 'not', 'not', 'items')).toBeDefined();
    expect(at(props, 'x-kubernetes-validations')).toMatchObject({ 'x-kubernetes-list-map-keys': ['rule'] });
  });

  it('finds unknown fields of a Pod', () => {
    const schema = pod();
    const object = { spec: { containers: [{ name: 'a', imagee: 'b' }], volumes: [{ name: 'v', emptyDir: { x: 1 } }] } };
    expect(pruneObject(schema ?? {}, object).unknown).toEqual([
      'spec.containers[0].imagee',
      'spec.volumes[0].emptyDir.x',
    ]);
  });

  it.each([
    ['', 'v1', 'Event'],
    ['events.k8s.io', 'v1', 'Event'],
    ['apps', 'v1', 'Deployment'],
    ['batch', 'v1', 'CronJob'],
    ['storage.k8s.io', 'v1', 'StorageClass'],
    ['coordination.k8s.io', 'v1', 'Lease'],
    ['rbac.authorization.k8s.io', 'v1', 'ClusterRoleBinding'],
    ['admissionregistration.k8s.io', 'v1', 'ValidatingWebhookConfiguration'],
    ['', 'v1', 'PodList'],
  ])('has %s/%s %s', (group, version, kind) => {
    expect(builtinSchema(group, version, kind)?.properties).toHaveProperty('metadata');
  });

  it('returns no schema for unknown kinds', () => {
    expect(builtinSchema('example.org', 'v1', 'Widget')).toBeUndefined();
  });

  it.each([
    ['V1PodSpec', 'PodSpec'],
    ['CoreV1Event', 'Event'],
    ['V1beta1Foo', 'Foo'],
    ['V1VolumeMount', 'VolumeMount'],
  ])('derives from %s the name %s', (model, name) => {
    expect(typeNameOf(model)).toBe(name);
  });
});
