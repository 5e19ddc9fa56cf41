// The CEL in the manifests, by the embedded evaluator: what the CRDs reject, and which requests are sent to a webhook at all.
import { describe, expect, it } from 'vitest';
import { buildCrd } from '#infra/generate/crd.ts';
import { objects } from '#infra/generate/declared.ts';
import { buildWebhookConfiguration } from '#infra/generate/webhooks.ts';
import { admissionFunctions } from '#infra/generate/wiring.ts';
import { mergeObjects } from '#local-cluster/api-server/patch/outcome.ts';
import { compileMatchCondition } from '#local-cluster/api-server/schema/cel.ts';
import { type JsonSchema, applyDefaults, validateObject } from '#local-cluster/api-server/schema/structural.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { type Draft, aHarvesterImage } from '#test/support/admission.ts';
import { claim } from '#test/support/row-objects.ts';
import { protectedRows } from '#test/support/protected-rows.ts';
import { acceptedChanges, createdImages, refusedChanges, refusedImages } from '#test/support/image-changes.ts';

type JsonObject = Parameters<typeof validateObject>[1];
const toJson = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

interface Crd {
  readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: JsonSchema } }[] };
}

const schemaOf = ({ apiVersion }: Draft): JsonSchema => {
  const kind = servedKinds.find(({ type }) => apiVersionOf(type) === apiVersion);
  return (buildCrd(kind!) as unknown as Crd).spec.versions[0]!.schema.openAPIV3Schema;
};

const fieldsOf = (object: Draft, spec?: object): readonly string[] => {
  const schema = schemaOf(object);
  const before = applyDefaults(schema, toJson(object));
  if (spec === undefined) return validateObject(schema, before).map(({ field }) => field);
  const after = applyDefaults(schema, mergeObjects(before, toJson({ spec })));
  return validateObject(schema, after, { oldObject: before }).map(({ field }) => field);
};

describe('the rules of the CRDs', () => {
  it.each(refusedChanges)('reject a change of %s', (_what, of, spec, field) => {
    expect(fieldsOf(createdImages[of], spec)).toContain(field);
  });

  it.each(acceptedChanges)('accept a change of %s', (_what, of, spec) => {
    expect(fieldsOf(createdImages[of], spec)).toEqual([]);
  });

  it.each(refusedImages)('reject %s', (_what, image, field) => {
    expect(fieldsOf(image)).toContain(field);
  });
});

const onDataVolume = [{ name: 'root', dataVolume: { name: 'x' } }];
const onClaim = [{ name: 'root', persistentVolumeClaim: { claimName: 'x' } }];
const aMachine = (volumes: readonly object[]): Draft => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'default' },
  spec: { template: { spec: { volumes } } },
});

interface Hook {
  readonly name: string;
  readonly matchConditions: readonly { readonly name: string; readonly expression: string }[];
}

const hooks = admissionFunctions.flatMap(
  (fn) => (buildWebhookConfiguration(fn, objects) as unknown as { webhooks: Hook[] }).webhooks,
);

interface Asked {
  readonly object?: Draft;
  readonly oldObject?: Draft;
  readonly username?: string;
}

const resourceOf = (subject: Draft | undefined): string => `${subject?.kind.toLowerCase()}s`;

const calls = (hookName: string, { object, oldObject, username = 'jane' }: Asked): boolean => {
  const hook = hooks.find(({ name }) => name === `${hookName}.bullion.dev`);
  const operation = object === undefined ? 'DELETE' : oldObject === undefined ? 'CREATE' : 'UPDATE';
  return hook!.matchConditions.every(({ expression }) => {
    const condition = compileMatchCondition(expression);
    if (condition.kind === 'invalid') throw new Error(`${expression}: ${condition.message}`);
    return condition.matches({
      object: object === undefined ? null : toJson(object),
      oldObject: oldObject === undefined ? null : toJson(oldObject),
      request: toJson({ operation, userInfo: { username }, resource: { resource: resourceOf(object ?? oldObject) } }),
    });
  });
};

describe('the match conditions', () => {
  const image = aHarvesterImage();
  const changed = (metadata: Record<string, unknown>, spec: object = {}): Draft => ({
    ...image,
    metadata: { ...image.metadata, ...metadata },
    spec: { ...image.spec, ...spec },
  });
  const gone = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const annotated = changed({ annotations: { a: 'b' } });

  it.each([
    ['a new image', { object: image }, true, true],
    ['a new image with annotations', { object: annotated }, true, true],
    ['a changed spec', { object: changed({}, { description: 'x' }), oldObject: image }, true, true],
    ['a first annotation', { object: annotated, oldObject: image }, true, true],
    ['a changed annotation', { object: annotated, oldObject: changed({ annotations: { a: 'c' } }) }, true, true],
    ['the last annotation gone', { object: image, oldObject: annotated }, true, true],
    ['a label', { object: changed({ labels: { a: 'b' } }), oldObject: image }, false, true],
    ['a finalizer', { object: changed({ finalizers: ['x'] }), oldObject: image }, false, false],
    ['the same again', { object: annotated, oldObject: annotated }, false, false],
    ['an image on its way out', { object: changed(gone, { url: 'x' }), oldObject: changed(gone) }, false, false],
  ] as const)('say of %s whether validate and mutate are called', (...[, asked, validate, mutate]) => {
    expect([calls('images.validate', asked), calls('images.mutate', asked)]).toEqual([validate, mutate]);
  });

  it.each([
    ['jane', true],
    ['system:serviceaccount:default:generic-garbage-collector', true],
    ['system:serviceaccount:kube-system:generic-garbage-collector', false],
    ['system:serviceaccount:kube-system:namespace-controller', false],
    ['system:kube-controller-manager', false],
    ['system:serviceaccount:bullion-system:cron-tick', false],
  ])('decide for a deletion by %s whether the webhook is called', (username, isCalled) => {
    expect(calls('golden.validate', { oldObject: claim(), username })).toBe(isCalled);
  });

  it.each(['system:kube-controller-manager', 'system:serviceaccount:kube-system:statefulset-controller'])(
    'let the webhook be called for objects that %s creates for others',
    (username) => {
      expect(calls('claims.validate', { object: claim({}, { storageClassName: 'lh-uid-1' }), username })).toBe(true);
      for (const hook of ['marks.validate', 'marks.mutate'])
        expect(calls(hook, { object: claim(), username })).toBe(true);
    },
  );

  const scopes: Readonly<Record<string, string>> = {
    'protected/image-of-template': 'templates',
    'protected/image-class-allowed': 'claims',
    'protected/marks-are-ours': 'marks',
    'protected/golden-volume-in-use': 'golden',
    'protected/exported-claim': 'disks',
    'protected/machine-disk': 'disks',
    'protected/golden-volume-unmounted': 'machines',
    'protected/machine-image-allowed': 'machines',
    'protected/class-in-use': 'classes',
    'protected/reserved-class': 'classes',
    'protected/encryption-key-in-use': 'keys',
    'protected/locked': 'locks',
  };
  const scopeOf = (id: string): string => scopes[id] ?? 'class-rules';

  it.each(protectedRows)('let the webhook be called for what $id keeps', ({ id, denied }) => {
    expect(calls(`${scopeOf(id)}.validate`, denied)).toBe(true);
  });

  it.each(
    protectedRows.filter(({ id }) =>
      ['protected/image-of-template', 'protected/image-class-allowed', 'protected/marks-are-ours'].includes(id),
    ),
  )('let what $id does not keep pass without a call', ({ id, allowed }) => {
    expect(calls(`${scopeOf(id)}.validate`, allowed)).toBe(false);
  });

  it('let other Secrets and claims pass without a call', () => {
    const [apiVersion, metadata] = ['v1', { name: 'x', namespace: 'default' }];
    const secret = { apiVersion, kind: 'Secret', metadata, data: { password: 'x' } };
    expect(calls('keys.validate', { oldObject: secret })).toBe(false);
    expect(calls('disks.validate', { oldObject: { apiVersion, kind: 'PersistentVolumeClaim', metadata } })).toBe(false);
  });

  it.each([
    ['without disks', { object: aMachine([]) }, false],
    ['with a container disk', { object: aMachine([{ name: 'a', containerDisk: {} }]) }, false],
    [
      'whose label changed',
      { object: { ...aMachine(onClaim), metadata: { labels: { a: 'b' } } }, oldObject: aMachine(onClaim) },
      false,
    ],
    ['with a new disk', { object: aMachine(onClaim), oldObject: aMachine([]) }, true],
    ['with a new disk by its data volume', { object: aMachine(onDataVolume), oldObject: aMachine([]) }, true],
  ])('decide for a machine %s whether the webhook is called', (_what, asked, isCalled) => {
    expect(calls('machines.validate', asked)).toBe(isCalled);
  });
});
