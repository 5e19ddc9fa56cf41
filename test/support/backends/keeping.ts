// The storage objects of a finished image are protected from deletion, for every backend. Called by contract.test.ts: the children are those
// that the real handlers created, so that a new kind or role is tested automatically.
import { describe, expect, it } from 'vitest';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { configMaps, jobs, kubeEvents, pods, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';
import { backends } from '#shared/backends/registry.ts';
import { createValidator } from '#shared/resources/admission.ts';
import { goldenTypes } from '#shared/resources/protected/golden.ts';
import { type Storage, localClasses } from '#test/support/backends/classes.ts';
import { aHarvesterImage, aSnapshotClass, aSuccess } from '#test/support/builders.ts';
import { createWebhooks } from '#test/support/simulation/webhooks.ts';
import { type World, createWorld, imageIn } from '#test/support/simulation/world.ts';

const hours = 3_600_000;
const user = 'jane';
const knownTypes = [
  ...goldenTypes,
  storageProfiles,
  jobs,
  pods,
  configMaps,
  secrets,
  leases,
  kubeEvents,
] as readonly ResourceType[];

const typeOf = ({ kind, metadata }: KubeObject): ResourceType => {
  const type = knownTypes.find((one) => one.kind === kind);
  if (type === undefined) throw new Error(`${kind} ${metadata.name}: name its type here`);
  return type;
};

const deletionOf = (object: KubeObject): AdmissionRequest => {
  const { group, version, kind, plural } = typeOf(object);
  return {
    uid: 'review-1',
    kind: { group, version, kind },
    resource: { group, version, resource: plural },
    ...keyOf(object),
    operation: 'DELETE',
    userInfo: { username: user, groups: [] },
    object: undefined,
    oldObject: object,
    dryRun: false,
  };
};

/** Children by our labels, and objects that others created for them. */
const descendantsIn = ({ kube }: World, uid: string): readonly KubeObject[] => {
  const family = new Set([uid]);
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const { metadata } of kube.all()) {
      const owners = [metadata.labels?.[labels.ownerUid], ...(metadata.ownerReferences ?? []).map((one) => one.uid)];
      if (owners.some((owner) => owner !== undefined && family.has(owner))) family.add(metadata.uid ?? '');
    }
  }
  return kube.all().filter(({ metadata }) => metadata.uid !== uid && family.has(metadata.uid ?? ''));
};

const finished = async (backend: string, storage: Storage, cdi: 'use' | undefined) => {
  const world = createWorld({ attempt: () => ({ runMs: 4_000, end: aSuccess() }), backends, ...(cdi && { cdi }) });
  world.kube.seed(storageClasses, storage.storageClass);
  if (storage.described !== undefined) world.kube.seed(storageProfiles, storage.described);
  if (storage.snapshots) world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  const { spec, ...rest } = aHarvesterImage();
  const image = { ...rest, spec: { ...spec, backend: backend as 'csi' } };
  world.schedule(0, () => world.kube.seed(harvesterImageKind.type, image));
  await world.run(4 * hours);
  return world;
};

/** Whether the API server calls our webhook, and fails if it is unavailable. */
const isAsked = (object: KubeObject): boolean => {
  const webhooks = createWebhooks(() => true);
  try {
    webhooks.admit({ operation: 'DELETE', type: typeOf(object), user, old: object });
    return false;
  } catch {
    return webhooks.refused.length > 0;
  }
};

export const describeKeeping = (name: string, { makesDataVolumes = false }): void => {
  const cases = Object.entries(localClasses).flatMap(([what, storage]) =>
    // The simulated CDI does not bind claims itself.
    makesDataVolumes && storage.storageClass.volumeBindingMode !== 'WaitForFirstConsumer'
      ? [undefined, 'use' as const].map((cdi) => ({ what, storage, cdi }))
      : [{ what, storage, cdi: undefined }],
  );

  describe(`the parameters of an image on ${name}`, () => {
    it.each(cases)('are kept, on storage that $what (cdi: $cdi)', async ({ storage, cdi }) => {
      const world = await finished(name, storage, cdi);
      const image = () => imageIn<HarvesterImage>(world)!;
      const { status, metadata } = image();
      expect(status?.phase).toBe('Imported');
      const validate = createValidator(world.kube);
      const children = descendantsIn(world, metadata.uid ?? '');
      const answers = await Promise.all(
        children.map(async (child) => ({ child, answer: await validate(deletionOf(child)) })),
      );
      const kept = answers.filter(({ answer }) => answer.kind === 'refused');
      expect(kept.length).toBeGreaterThan(0);
      for (const { child, answer } of kept) {
        const says = expect.stringMatching(/default\/image-leap: delete that image instead$/) as string;
        expect([child.kind, answer, isAsked(child)]).toEqual([
          child.kind,
          expect.objectContaining({ message: says }),
          true,
        ]);
      }
      // Everything that may be deleted is not needed by the image.
      for (const { child, answer } of answers)
        if (answer.kind === 'allowed') await world.kube.delete(typeOf(child), keyOf(child)).catch(() => undefined);
      await world.run(world.elapsed() + hours);
      const { phase, attempts, children: recorded } = status ?? {};
      expect(image().status).toMatchObject({ phase, attempts, children: recorded });
      expect(descendantsIn(world, metadata.uid ?? '').map((one) => one.metadata.uid)).toEqual(
        expect.arrayContaining(kept.map(({ child }) => child.metadata.uid)),
      );
    });
  });
};
