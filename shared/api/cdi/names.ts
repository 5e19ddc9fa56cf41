// Labels and annotations of cdi.kubevirt.io that its clients read. Keys are those of the original.

export const cdiGroup = 'cdi.kubevirt.io';

export const cdiLabels = {
  /** On everything a cron creates or manages: the name of the cron. */
  cron: `${cdiGroup}/dataImportCron`,
  /** On objects that are deleted with their cron. */
  cleanup: `${cdiGroup}/dataImportCron.cleanup`,
  /** On claims that clients create (`virtctl image-upload` does): missing modes are taken from the profile of their class. */
  applyProfile: `${cdiGroup}/applyStorageProfile`,
} as const;

export const cdiAnnotations = {
  /** On a cron: the digest to import. Set by our polls, or by any other writer. */
  desiredDigest: `${cdiGroup}/storage.import.sourceDesiredDigest`,
  /** On a cron, RFC 3339: time of the last poll. */
  lastCronTime: `${cdiGroup}/storage.import.lastCronTime`,
  /** On a cron, RFC 3339: time of the next poll; a time in the past polls now. */
  nextCronTime: `${cdiGroup}/storage.import.nextCronTime`,
  /** On a cron: storage class of the version in use. */
  storageClass: `${cdiGroup}/storage.import.storageClass`,
  /** On a version, RFC 3339 with a fraction: when it was last the current version of the cron. */
  lastUseTime: `${cdiGroup}/storage.import.lastUseTime`,
  /** On a data volume, any value: do not wait for a consumer. */
  immediateBinding: `${cdiGroup}/storage.bind.immediate.requested`,
  /** On a claim, any value: it waits for an upload. */
  uploadTarget: `${cdiGroup}/storage.upload.target`,
  /** On a claim, `true`: the upload can start. */
  podReady: `${cdiGroup}/storage.pod.ready`,
  /** On a claim: phase of the pod that fills it; `Succeeded` stays. */
  podPhase: `${cdiGroup}/storage.pod.phase`,
  /** On a claim: `kubevirt` for a disk, `archive` for files. */
  contentType: `${cdiGroup}/storage.contentType`,
  /** On a claim: how it was cloned, and why byte by byte. */
  cloneType: `${cdiGroup}/cloneType`,
  cloneFallbackReason: `${cdiGroup}/cloneFallbackReason`,
  /** On a cron, copied to the data volume. */
  retainPod: `${cdiGroup}/storage.pod.retainAfterCompletion`,
  /** On a snapshot: `Block` or `Filesystem`. */
  sourceVolumeMode: `${cdiGroup}/storage.import.sourceVolumeMode`,
  /** On a snapshot: the size to restore to. */
  advisedRestoreSize: `${cdiGroup}/storage.import.advisedRestoreSize`,
  /** On a storage profile, `true`: golden images of this class are written by one node. */
  singleWriter: `${cdiGroup}/useReadWriteOnceForDataImportCron`,
  /** On a storage profile, a quantity: the smallest volume of the class. */
  leastSize: `${cdiGroup}/minimumSupportedPvcSize`,
  /** On a storage profile: the snapshot class for golden images. */
  snapshotClass: `${cdiGroup}/snapshotClassForDataImportCron`,
} as const;

/** Labels that describe how to run a golden image: the only ones that are copied from object to object. */
const travelling = /^instancetype\.kubevirt\.io\/[\w.-]+$|^kubevirt\.io\/dynamic-credentials-support$/;

/** Labels of a cron that are copied to its versions and its data source. */
const fromCron = /^(?:[\w-]+\.)*kubevirt\.io\/[\w.-]+$/;

/** Keys that identify the manager of an object, which must not be copied. */
const isManagement = (key: string): boolean => key.startsWith(`${cdiGroup}/`);

type Labels = Readonly<Record<string, string>>;

const pick = (labels: Labels | undefined, isWanted: (key: string) => boolean): Labels =>
  Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => isWanted(key)));

/** Labels that a data source copies from its volume or snapshot. */
export const travellingLabels = (labels: Labels | undefined): Labels => pick(labels, (key) => travelling.test(key));

/** Labels that versions and data source copy from their cron. */
export const cronLabels = (labels: Labels | undefined): Labels =>
  pick(labels, (key) => fromCron.test(key) && !isManagement(key));
