// Binds, provisions and expands claims of the local storage classes.
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  type SecretReference,
  type StorageClass,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import { keyOf } from '#shared/api/object.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { createSay, type Say } from '#local-cluster/controllers/events.ts';
import { keyOfText, textOf } from '#local-cluster/controllers/informer.ts';
import { handleOf, volumeModeOf } from '#local-cluster/controllers/volumes/facts.ts';
import type { Origin, VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';
import { look } from '#local-cluster/controllers/volumes/look.ts';
import { type ClaimStep, planClaim } from '#local-cluster/controllers/volumes/plan.ts';

/** On a volume until its files are deleted. */
export const filesFinalizer = 'local.bullion.dev/files';

interface Tools {
  readonly kube: KubeClient;
  readonly say: Say;
  readonly directory: VolumeDirectory;
  readonly unpack: Unpack;
}

/** Prepares the disk that volumes of such a class are copied from. */
export type Unpack = (storageClass: StorageClass) => Promise<void>;

export const startClaimController = (
  context: ControllerContext & { readonly directory: VolumeDirectory; readonly unpack: Unpack },
): Controller => {
  const tools: Tools = { ...context, say: createSay(context.kube, 'local-provisioner') };
  const said = new Map<string, string>();
  return startController(
    {
      ...context,
      name: 'claims',
      reconcile: async (key) => {
        const claim = await context.kube.get(persistentVolumeClaims, keyOfText(key));
        if (claim === undefined) {
          said.delete(key);
          return undefined;
        }
        const step = planClaim(await look(context.kube, claim));
        if (step.do !== 'wait') return carryOut(tools, claim, step);
        // The same obstacle is reported once, not at every resync.
        if (said.get(key) !== step.message) {
          said.set(key, step.message);
          await tools.say(claim, {
            type: step.warn ? 'Warning' : 'Normal',
            reason: step.reason,
            message: step.message,
          });
        }
        return 2_000;
      },
    },
    ({ watch }) => {
      watch(persistentVolumeClaims, (claim) => [textOf(claim.metadata)]);
      watch(persistentVolumes, ({ spec: { claimRef } }) => (claimRef === undefined ? [] : [textOf(claimRef)]));
    },
  );
};

type Doable = Exclude<ClaimStep, { do: 'wait' }>;

const carryOut = async (tools: Tools, claim: PersistentVolumeClaim, step: Doable): Promise<number | undefined> => {
  const { kube } = tools;
  switch (step.do) {
    case 'nothing':
      return undefined;
    case 'set-class':
      await kube.mergePatch(persistentVolumeClaims, keyOf(claim), { spec: { storageClassName: step.className } });
      return undefined;
    case 'provision':
      await provision(tools, claim, step);
      return undefined;
    case 'bind':
      await bind(kube, claim, step.volume);
      return undefined;
    case 'mark-lost':
      await kube.mergePatch(
        persistentVolumeClaims,
        keyOf(claim),
        { status: { phase: 'Lost' } },
        { subresource: 'status' },
      );
      await tools.say(claim, {
        type: 'Warning',
        reason: 'ClaimLost',
        message: 'Bound claim has lost its PersistentVolume',
      });
      return undefined;
    case 'expand':
      await expand(tools, claim, step.volume, step.bytes);
      return undefined;
  }
};

const provision = async (
  { kube, say, directory, unpack }: Tools,
  claim: PersistentVolumeClaim,
  {
    storageClass,
    bytes,
    from,
  }: { readonly storageClass: StorageClass; readonly bytes: number; readonly from?: Origin },
): Promise<void> => {
  const handle = `pvc-${claim.metadata.uid ?? ''}`;
  try {
    if (from?.what === 'image') await unpack(storageClass);
    await directory.create(handle, { mode: volumeModeOf(claim.spec), bytes }, from);
  } catch (error) {
    await say(claim, {
      type: 'Warning',
      reason: 'ProvisioningFailed',
      message: `cannot create the volume: ${String(error)}`,
    });
    throw error;
  }
  const volume = buildVolume(claim, storageClass, { handle, bytes });
  await kube.create(persistentVolumes, volume).catch((error: unknown) => {
    // Created by an earlier pass that was interrupted before it reported it.
    if (!isConflict(error)) throw error;
  });
  await say(claim, {
    type: 'Normal',
    reason: 'ProvisioningSucceeded',
    message: `Successfully provisioned volume ${handle}`,
  });
  await bind(kube, claim, volume);
};

const buildVolume = (
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  { handle, bytes }: { readonly handle: string; readonly bytes: number },
): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    name: handle,
    annotations: { 'pv.kubernetes.io/provisioned-by': storageClass.provisioner },
    finalizers: [filesFinalizer],
  },
  spec: {
    capacity: { storage: formatQuantity(bytes) },
    accessModes: claim.spec.accessModes ?? ['ReadWriteOnce'],
    volumeMode: volumeModeOf(claim.spec),
    storageClassName: storageClass.metadata.name,
    persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
    claimRef: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: claim.metadata.namespace ?? 'default',
      name: claim.metadata.name,
      uid: claim.metadata.uid ?? '',
    },
    csi: {
      driver: storageClass.provisioner,
      volumeHandle: handle,
      ...(storageClass.parameters === undefined ? {} : { volumeAttributes: storageClass.parameters }),
      ...secretRefs(claim, storageClass, handle),
    },
  },
});

const secretStages = {
  nodeStageSecretRef: 'node-stage',
  nodePublishSecretRef: 'node-publish',
  nodeExpandSecretRef: 'node-expand',
  controllerExpandSecretRef: 'controller-expand',
} as const;

/** As in the external provisioner: name templates are expanded per claim. */
const secretRefs = (
  { metadata }: PersistentVolumeClaim,
  { parameters = {} }: StorageClass,
  handle: string,
): Partial<Record<keyof typeof secretStages, SecretReference>> => {
  const values: Readonly<Record<string, string | undefined>> = {
    'pv.name': handle,
    'pvc.name': metadata.name,
    'pvc.namespace': metadata.namespace,
  };
  const resolve = (text: string | undefined): string | undefined =>
    text?.replace(/\$\{([^}]+)\}/g, (_all, name: string) => values[name] ?? annotationIn(name, metadata) ?? '');
  const refs = Object.entries(secretStages).flatMap(([field, stage]) => {
    const name = resolve(parameters[`csi.storage.k8s.io/${stage}-secret-name`]);
    const namespace = resolve(parameters[`csi.storage.k8s.io/${stage}-secret-namespace`]);
    return name === undefined || namespace === undefined ? [] : [[field, { name, namespace }] as const];
  });
  return Object.fromEntries(refs);
};

const annotationIn = (text: string, { annotations }: PersistentVolumeClaim['metadata']): string | undefined =>
  annotations?.[/^pvc\.annotations\['(.+)'\]$/.exec(text)?.[1] ?? ''];

/** Volume first, then the claim's spec, then both statuses: the next pass repeats each step without effect. */
const bind = async (kube: KubeClient, claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> => {
  const name = volume.metadata.name;
  const { uid } = claim.metadata;
  if (volume.spec.claimRef?.uid !== uid) {
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...keyOf(claim), uid };
    await kube.mergePatch(persistentVolumes, { name }, { spec: { claimRef } });
  }
  await kube.mergePatch(persistentVolumes, { name }, { status: { phase: 'Bound' } }, { subresource: 'status' });
  await kube.mergePatch(persistentVolumeClaims, keyOf(claim), {
    metadata: { uid, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { volumeName: name },
  });
  await kube.mergePatch(
    persistentVolumeClaims,
    keyOf(claim),
    {
      metadata: { uid },
      status: { phase: 'Bound', capacity: volume.spec.capacity, accessModes: volume.spec.accessModes },
    },
    { subresource: 'status' },
  );
};

const expand = async (
  { kube, say, directory }: Tools,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  bytes: number,
): Promise<void> => {
  const storage = formatQuantity(bytes);
  await directory.expand(handleOf(volume), volumeModeOf(volume.spec), bytes);
  await kube.mergePatch(persistentVolumes, keyOf(volume), { spec: { capacity: { storage } } });
  await kube.mergePatch(
    persistentVolumeClaims,
    keyOf(claim),
    { status: { capacity: { storage }, conditions: null } },
    { subresource: 'status' },
  );
  await say(claim, { type: 'Normal', reason: 'FileSystemResizeSuccessful', message: `volume is now ${storage}` });
};
