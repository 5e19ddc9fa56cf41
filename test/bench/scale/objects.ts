// Objects that came to rest, spread over namespaces: images, volumes with their claims, and crons. Called by the benchmark of scale.
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { buildVolume } from '#shared/populate/population.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { announcementOf } from '#shared/resources/transitions.ts';
import { makeEach } from '#test/bench/connect.ts';
import { aGoldenCron, settledStatus } from '#test/bench/golden/crons.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { aDataVolume } from '#test/support/data-volumes.ts';

export interface Counts {
  readonly images: number;
  readonly volumes: number;
  readonly crons: number;
}

const namespaceCount = 20;
const namespaceOf = (index: number): string => `tenant-${index % namespaceCount}`;
const digest = `sha256:${'ab'.repeat(32)}`;
const ended: ImageState = { ...initialState, phase: 'Available', reason: 'Ready', message: 'ready to use' };
const settledAt = '2026-03-01T00:00:00Z';

/** With its status, which create ignores. */
const createSettled = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  object: T,
  statusOf: (made: T) => unknown,
): Promise<T> => {
  const made = await kube.create<T>(type, object);
  return kube.replace<T>(type, { ...made, status: statusOf(made) }, { subresource: 'status' });
};

const createImage = async (kube: KubeClient, index: number): Promise<void> => {
  const image = aHyperCloudImage({ metadata: { namespace: namespaceOf(index), name: `image-${index}` } });
  await createSettled(kube, hyperCloudImageKind.type, image, (made) => {
    const read = hyperCloudImages.toImage(made);
    return hyperCloudImages.toStatus(made, read, { ...ended, announced: announcementOf(read, ended) }, settledAt);
  });
};

const createVolume = async (kube: KubeClient, index: number): Promise<void> => {
  const [name, namespace] = [`disk-${index}`, namespaceOf(index)];
  const spec = { source: { http: { url: 'https://images.example/a' } }, storage: { storageClassName: 'local' } };
  const { apiVersion, kind, metadata } = await createSettled<DataVolume>(
    kube,
    dataVolumeKind.type,
    aDataVolume(name, spec, {}, namespace),
    (made) => {
      const volume = dataVolumes.toVolume(made);
      return dataVolumes.toStatus(made, volume, { ...ended, children: { volume: name } }, settledAt);
    },
  );
  const claim = buildVolume({
    owner: { apiVersion, kind, namespace, name, uid: metadata.uid ?? '' },
    name,
    storageClassName: 'local',
    volumeMode: 'Block',
    accessModes: ['ReadWriteOnce'],
    bytes: 2 ** 30,
    annotations: {},
  });
  await kube.create(persistentVolumeClaims, claim);
};

const createCron = async (kube: KubeClient, index: number): Promise<void> => {
  const cron = aGoldenCron({ namespace: namespaceOf(index), index, url: 'docker://registry.example/disk:1', digest });
  await createSettled(kube, dataImportCronKind.type, cron, (made) => settledStatus(made, digest));
};

export const createNamespaces = (kube: KubeClient): Promise<void> =>
  makeEach(namespaceCount, async (index) => {
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespaceOf(index) } });
  });

/** Adds what is missing. */
export const fill = async (kube: KubeClient, from: Counts, to: Counts): Promise<void> => {
  await makeEach(to.images - from.images, (index) => createImage(kube, from.images + index));
  await makeEach(to.volumes - from.volumes, (index) => createVolume(kube, from.volumes + index));
  await makeEach(to.crons - from.crons, (index) => createCron(kube, from.crons + index));
};
