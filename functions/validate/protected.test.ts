// Rules that read other objects: the creation of images, and what must not be deleted while they depend on it. One row each.
import { describe, expect, it } from 'vitest';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp } from '#functions/validate/app.ts';
import { workloadControllers } from '#shared/api/names.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Asked, type Draft, ask, clusterOf, patched, rightOf, withAccess } from '#test/support/admission.ts';
import { imageRows } from '#test/support/image-rows.ts';
import { exemptRows } from '#test/support/exempt-rows.ts';
import { protectedRows } from '#test/support/protected-rows.ts';
import { claim, image, imageClass } from '#test/support/row-objects.ts';

/** As sent by the API server: validation gets the result of mutation. */
const validate = async (asked: Asked, given: readonly Draft[], rights?: readonly string[]) => {
  const kube = withAccess(clusterOf(...given), (question) => rights?.includes(rightOf(question)) ?? true);
  const deps = { kube, log: silentLogger };
  const { object } = asked;
  if (object === undefined) return ask(createApp(deps), '/validate', asked);
  const filled = patched(object, await ask(createMutate(deps), '/mutate', asked));
  return ask(createApp(deps), '/validate', { ...asked, object: filled });
};

describe('protected objects', () => {
  it.each([...imageRows, ...protectedRows])('keep $what ($id)', async ({ given, rights, allowed, denied, says }) => {
    expect(await validate(allowed, given, rights)).toMatchObject({ allowed: true });
    const answer = await validate(denied, given, rights);
    expect([answer.allowed, answer.status?.message]).toEqual([false, expect.stringMatching(says)]);
  });

  const deletions = [...imageRows, ...protectedRows].filter(
    ({ denied: { object, oldObject } }) => object === undefined && oldObject?.metadata['namespace'] !== undefined,
  );
  it('are of several kinds in a namespace', () => {
    const kinds = new Set(deletions.map(({ denied }) => denied.oldObject?.kind));
    expect([...kinds]).toEqual(expect.arrayContaining(['VirtualMachineImage', 'PersistentVolumeClaim', 'DataVolume']));
  });
  it.each(deletions)('do not keep a namespace that is deleted: $what ($id)', async ({ given, rights, denied }) => {
    const namespace = (deletionTimestamp?: string): Draft => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: denied.oldObject?.metadata['namespace'], ...(deletionTimestamp && { deletionTimestamp }) },
    });
    expect(await validate(denied, [...given, namespace()], rights)).toMatchObject({ allowed: false });
    const ending = namespace('2026-01-01T00:00:00Z');
    expect(await validate(denied, [...given, ending], rights)).toMatchObject({ allowed: true });
  });

  const ofImage = claim({ namespace: 'tenant' }, { storageClassName: 'lh-uid-1' });
  const may = ['get virtualmachineimages default/*'];
  it.each<[string, Draft, readonly string[], RegExp]>([
    ['the namespace of the image', claim({}, { storageClassName: 'lh-uid-1' }), [], /^true,$/],
    ['a namespace whose accounts may see the image', ofImage, may, /^true,$/],
    [
      'another namespace',
      ofImage,
      [],
      /^false,.*system:serviceaccount:tenant:default is not allowed to use the image of this/,
    ],
  ])('allow a StatefulSet to have disks of an image in %s', async (_what, object, rights, says) => {
    for (const username of workloadControllers) {
      // Rights of the tenant's accounts: those of the cluster have none about images.
      const kube = withAccess(
        clusterOf(imageClass, image),
        (question) => question.user === 'system:serviceaccount:tenant:default' && rights.includes(rightOf(question)),
      );
      const { allowed, status } = await ask(createApp({ kube, log: silentLogger }), '/validate', { object, username });
      expect(String([allowed, status?.message])).toMatch(says);
    }
  });

  it.each(exemptRows)('do not include $what ($ids)', async ({ given, rights = [], asked }) => {
    expect(await validate(asked, given, rights)).toMatchObject({ allowed: true });
  });
});
