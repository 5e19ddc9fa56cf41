// cdi.kubevirt.io DataVolume ↔ volume. Its claim has the same name, and the labels and annotations that KubeVirt and virtctl read.
import { readGrants } from '#shared/access/permissions.ts';
import { setCdiConditions } from '#shared/api/conditions.ts';
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiGroup } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { PodWishes } from '#shared/populate/job/pod-place.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { dataVolumeRules } from '#shared/resources/data-volume/rules.ts';
import { readSource, sourceKinds } from '#shared/resources/data-volume/source.ts';
import { conditionsOf, notesOfDataVolume } from '#shared/resources/data-volume/conditions.ts';
import {
  claimMarks,
  comesFilled,
  fillsClaim,
  filledMarks,
  listeningMarks,
  mayAdopt,
  mayBeStatic,
} from '#shared/resources/data-volume/claim-marks.ts';
import { isRunning, isUpload, phaseOf, progressOf, steadyPhase } from '#shared/resources/data-volume/conditions.ts';
import { readMetadata } from '#shared/resources/dialect.ts';
import { faultsOf } from '#shared/resources/rule.ts';
import type { VolumeDialect } from '#shared/resources/volume-reconciler.ts';
import { toVolumeState, toVolumeStatus } from '#shared/resources/status.ts';
import { copyRecordOf } from '#shared/populate/volume/golden-copy.ts';
import type { ClaimRequest, Volume } from '#shared/populate/volume/volume.ts';
import { withoutUndefined } from '#shared/runtime/json.ts';

/** CDI retries forever. */
const retries = 3;

const toVolume = (object: DataVolume): Volume => {
  const { metadata, spec, status } = object;
  const isBoundAtOnce = metadata.annotations?.[cdiAnnotations.immediateBinding] !== undefined;
  const checksum = parseChecksum(spec.source?.http?.checksum ?? '');
  const source = readSource(
    spec,
    metadata.namespace ?? 'default',
    metadata.annotations?.[annotations.workloadIdentity],
  );
  return {
    ...readMetadata(object),
    faults: faultsOf(dataVolumeRules, object),
    source,
    isUpload: isUpload(source),
    checksum: 'value' in checksum ? checksum.value : undefined,
    holdsFiles: holdsFiles(object),
    claim: readClaim(object),
    labelled: dataVolumeKind.type,
    pod: readPod(object),
    grants: readGrants(object),
    content: metadata.annotations?.[annotations.content],
    waitsForConsumer: !isBoundAtOnce,
    isCopy: readCopy(object),
    isBoundAtOnce,
    retries,
    comesFromOriginal: status?.phase === 'Succeeded' && status.detail === undefined,
    state: readState(status),
  };
};

/** Disks wait for a golden copy under what they are made from: the version, or what the first one names. Once a disk was made, the others have been reconciled. */
const readCopy = (object: DataVolume): Volume['isCopy'] => {
  const record = copyRecordOf(object);
  if (record === undefined) return undefined;
  const { metadata, spec } = object;
  const source = readSource(spec, metadata.namespace ?? 'default');
  const version = source?.type === 'object' ? [source] : [];
  const isUsed = metadata.annotations?.[cdiAnnotations.lastUseTime] !== undefined;
  return { wakes: isUsed ? [] : [...version, ...(record.wakes === undefined ? [] : [record.wakes])] };
};

const readState = (status: DataVolumeStatus | undefined): Volume['state'] => {
  const state = toVolumeState(status && { ...status.detail, conditions: status.conditions }, readPhase(status));
  return { ...state, reason: status?.detail?.reason ?? state.reason };
};

/** A DataVolume that another installation filled, or failed to fill, is left unchanged. */
const readPhase = ({ phase, detail }: DataVolumeStatus = {}): string | undefined => {
  if (detail?.phase !== undefined) return detail.phase;
  return phase === 'Succeeded' ? 'Available' : phase === 'Failed' ? phase : undefined;
};

const preallocated = (asked: boolean | undefined): ClaimRequest['preallocated'] =>
  asked === true ? { [`${cdiGroup}/storage.preallocation`]: 'true' } : undefined;

const holdsFiles = ({ spec }: DataVolume): boolean => spec.contentType === 'archive';

/** The volume mode of a `pvc`, or of files: a file system by default. */
const readMode = (object: DataVolume): ClaimRequest['volumeMode'] => {
  const { pvc, storage } = object.spec;
  const { volumeMode } = pvc ?? storage ?? {};
  return pvc === undefined && !holdsFiles(object) ? volumeMode : (volumeMode ?? 'Filesystem');
};

/** `pvc` is used unchanged; `storage` is completed from class and source. */
const readClaim = (object: DataVolume): ClaimRequest => {
  const {
    metadata,
    spec: { pvc, storage = {}, source, preallocation },
  } = object;
  const { storageClassName, accessModes, resources } = pvc ?? storage;
  const bytes = parseQuantity(resources?.requests?.['storage']);
  return {
    name: metadata.name,
    role: copyRecordOf(object) === undefined ? undefined : 'volume',
    className: storageClassName === '' ? undefined : storageClassName,
    isForDisk: pvc === undefined && !holdsFiles(object),
    volumeMode: readMode(object),
    accessModes: accessModes?.length === 0 ? undefined : accessModes,
    ...(pvc === undefined ? { diskBytes: bytes } : { bytes }),
    isProfiled: pvc === undefined,
    labels: { ...metadata.labels, app: 'containerized-data-importer' },
    fileSystemLabels: { 'alerts.k8s.io/KubePersistentVolumeFillingUp': 'disabled' },
    annotations: claimMarks(object),
    listening: listeningMarks(source),
    filled: filledMarks(source),
    preallocated: preallocated(preallocation),
    comesFilled: comesFilled(metadata),
    mayBeStatic: mayBeStatic(metadata),
    adopts: (claim) => mayAdopt(metadata, claim.metadata.annotations ?? {}),
    fills: fillsClaim(metadata, source),
  };
};

/** Annotations that CDI copies to its pods. */
const podAnnotations = [
  'k8s.v1.cni.cncf.io/networks',
  'v1.multus-cni.io/default-network',
  'k8s.ovn.org/open-default-ports',
  'sidecar.istio.io/inject',
  'linkerd.io/inject',
];

/** A service mesh that waits for its proxy would prevent a Job from ending. */
const withoutMesh = { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' } as const;

const readPod = ({ metadata: { annotations = {} }, spec }: DataVolume): PodWishes => ({
  priorityClassName: spec.priorityClassName,
  serviceAccountName: spec.serviceAccountName,
  annotations: {
    ...withoutMesh,
    ...Object.fromEntries(Object.entries(annotations).filter(([name]) => podAnnotations.includes(name))),
  },
});

export const dataVolumes: VolumeDialect<DataVolume> = {
  kind: dataVolumeKind,
  sourceKinds: Object.values(sourceKinds),
  toVolume,
  notesOf: notesOfDataVolume,
  toStatus: ({ status }, volume, state, now): DataVolumeStatus =>
    withoutUndefined({
      ...status,
      observedGeneration: volume.generation,
      claimName: state.children?.volume,
      phase: steadyPhase(phaseOf(state, volume.source), status, state),
      progress: progressOf(state, volume.source),
      restartCount: state.attemptsFailed === 0 ? undefined : state.attemptsFailed,
      conditions: setCdiConditions(status?.conditions ?? [], conditionsOf(state, volume.source), now),
      detail: {
        ...toVolumeStatus(volume, state),
        phase: state.phase,
        reason: isRunning(state) ? state.reason : undefined,
        conditions: undefined,
      },
    }),
};
