// Reads what the next step of an export depends on; decides nothing.
import {
  type Job,
  type KubeEvent,
  type PersistentVolumeClaim,
  type Pod,
  jobs,
  namespaces,
  persistentVolumeClaims,
  pods,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { isFinal, isRetryDue } from '#shared/populate/filled.ts';
import { readNewestWarnings, readOwn, readWorkers } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import { exportName, readBy } from '#shared/resources/volume-export/children.ts';
import type { VolumeExport } from './rules.ts';
import { type Origin, readClaimOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import { writersOf } from '#shared/populate/clone/writer.ts';

export interface ObservedExport {
  readonly job?: Job | undefined;
  /** Removes data of a failed export from the store. */
  readonly clearJob?: Job | undefined;
  readonly pods: readonly Pod[];
  readonly snapshot?: VolumeSnapshot | undefined;
  /** Restored from the snapshot. */
  readonly copy?: PersistentVolumeClaim | undefined;
  /** The claim with the file of a local export, and the pod to fetch it from. */
  readonly file?: PersistentVolumeClaim | undefined;
  readonly filePod?: Pod | undefined;
  /** Objects with our names and other owners. */
  readonly foreign: readonly KubeObject[];
  /** Read only before anything was started. */
  readonly origin?: Origin | undefined;
  /** Pods that may write to the claim, or did while it was read without a snapshot. */
  readonly writers?: readonly Pod[];
  readonly warnings?: readonly KubeEvent[] | undefined;
  /** The namespace is being deleted, so nothing can be created in it; read only if the export is being deleted. */
  readonly isNamespaceLeaving?: boolean;
}

const nothing: ObservedExport = { pods: [], foreign: [] };

export const checkExport = async (kube: KubeClient, resource: VolumeExport): Promise<ObservedExport> => {
  const { state, deleting, ref } = resource;
  if (isFinal(state) && deleting) return nothing;
  if (isFinal(state) && !isRetryDue(resource)) return readLeft(kube, resource);
  const { own: job, foreign } = await readOwn(kube, jobs, ref, exportName(resource));
  if (job === undefined && state.failing === undefined && !deleting) return readForStart(kube, resource, foreign);
  const observed = { job, foreign, pods: await readWorkers(kube, ref) };
  if (deleting)
    return { ...observed, ...(await readClearJob(kube, resource)), ...(await readNamespace(kube, resource)) };
  return isUnderWay(resource, job, observed.pods)
    ? { ...observed, warnings: await readWarnings(kube, resource, [job, ...observed.pods]) }
    : readForEnd(kube, resource, observed);
};

/** A pass that started before the end was recorded may have restarted the export. */
const readLeft = async (kube: KubeClient, resource: VolumeExport): Promise<ObservedExport> => {
  const { own: job } = await readOwn(kube, jobs, resource.ref, exportName(resource));
  const made = await readMade(kube, resource);
  return { ...made, ...(await readClearJob(kube, resource)), job, pods: [], foreign: [] };
};

const isUnderWay = (resource: VolumeExport, job: Job | undefined, workers: readonly Pod[]): job is Job =>
  job !== undefined && !hasEnded(job, workers) && resource.state.failing === undefined && !isRetryDue(resource);

/** As in the plan: a worker that has ended is the end, even if its Job does not report it yet. */
const hasEnded = (job: Job, workers: readonly Pod[]): boolean =>
  isFinished(job) || ['succeeded', 'failed'].includes(readTransfer(job, workers, 0).is);

/** A retry may find the Job that cleared the store after the last try. */
const readForStart = async (
  kube: KubeClient,
  resource: VolumeExport,
  foreign: readonly KubeObject[],
): Promise<ObservedExport> => {
  const made = await readMade(kube, resource);
  const cleared = isRetryDue(resource) ? await readClearJob(kube, resource) : {};
  const origin = await readOrigin(kube, resource);
  return { pods: [], ...made, ...cleared, origin, foreign: [...foreign, ...made.foreign] };
};

const readForEnd = async (
  kube: KubeClient,
  resource: VolumeExport,
  observed: ObservedExport,
): Promise<ObservedExport> => {
  const made = await readMade(kube, resource);
  const writers = await readWriters(kube, resource, observed.job);
  return {
    ...observed,
    ...made,
    ...(await readClearJob(kube, resource)),
    writers,
    foreign: [...observed.foreign, ...made.foreign],
  };
};

const readMade = async (kube: KubeClient, resource: VolumeExport) => {
  const { ref, destination } = resource;
  const name = exportName(resource);
  const [snapshot, copy, file, filePod] = await Promise.all([
    readOwn(kube, volumeSnapshots, ref, name),
    readOwn(kube, persistentVolumeClaims, ref, name),
    destination?.is === 'local' ? readOwn(kube, persistentVolumeClaims, ref, destination.claimName) : undefined,
    destination?.is === 'local' ? readOwn(kube, pods, ref, destination.podName) : undefined,
  ]);
  const foreign = [snapshot, copy, file, filePod].flatMap((read): readonly KubeObject[] => read?.foreign ?? []);
  return { snapshot: snapshot.own, copy: copy.own, file: file?.own, filePod: filePod?.own, foreign };
};

const readClearJob = async (kube: KubeClient, { ref, destination }: VolumeExport) => {
  if (destination === undefined || destination.is === 'local') return {};
  const [abort, discard] = await Promise.all([
    readOwn(kube, jobs, ref, transferJobName('abort', ref)),
    readOwn(kube, jobs, ref, transferJobName('discard', ref)),
  ]);
  return { clearJob: discard.own ?? abort.own };
};

const readNamespace = async (kube: KubeClient, { ref }: VolumeExport) => {
  const namespace = await kube.get(namespaces, { name: ref.namespace ?? 'default' });
  return { isNamespaceLeaving: namespace === undefined || namespace.metadata.deletionTimestamp !== undefined };
};

/** A claim that was read without a snapshot must have had no writer meanwhile. */
const readWriters = async (kube: KubeClient, resource: VolumeExport, job: Job | undefined): Promise<readonly Pod[]> => {
  if (job === undefined || readBy(resource, job) === 'snapshot') return [];
  const { ref, source } = resource;
  return Array.fromAsync(writersOf(kube, { namespace: ref.namespace, name: claimNameOf(source) }));
};

export const claimNameOf = (source: VolumeExport['source']): string =>
  source.is === 'claim' ? source.name : source.claimName;

const readOrigin = async (kube: KubeClient, { ref, source }: VolumeExport): Promise<Origin> => {
  const { namespace } = ref;
  const what = source.is === 'claim' ? `PersistentVolumeClaim ${source.name}` : `VirtualMachineVolume ${source.name}`;
  if (source.is === 'volume') {
    const volume = await kube.get(virtualMachineVolumeKind.type, { namespace, name: source.name });
    if (volume === undefined) return waitFor('SourceNotFound', `${what} does not exist`);
    if (volume.status?.state !== 'Available') return waitFor('SourceNotReady', `${what} is not ready yet`);
  }
  // Everyone who may create the export may use claims of its own namespace.
  return readClaimOrigin(kube, { namespace, name: claimNameOf(source) }, { what, mayUse: () => true });
};

/** Only during a wait: a child that was just created has no warnings. */
const readWarnings = async (
  kube: KubeClient,
  { state }: VolumeExport,
  children: readonly KubeObject[],
): Promise<readonly KubeEvent[]> => (state.deadline === undefined ? [] : readNewestWarnings(kube, children));
