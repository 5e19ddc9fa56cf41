// The words of cdi.kubevirt.io on the wire: the labels and annotations its clients read. Keys stay as the original has them.

export const cdiGroup = 'cdi.kubevirt.io';

export const cdiLabels = {
  /** On everything a cron made or manages: the cron's name. */
  cron: `${cdiGroup}/dataImportCron`,
  /** On what goes with its cron. */
  cleanup: `${cdiGroup}/dataImportCron.cleanup`,
  /** On claims that clients make (`virtctl image-upload` does): what they leave open is taken from the profile of their class. */
  applyProfile: `${cdiGroup}/applyStorageProfile`,
} as const;

export const cdiAnnotations = {
  /** On a cron: the digest it is to import. Whoever writes it decides; our polls do. */
  desiredDigest: `${cdiGroup}/storage.import.sourceDesiredDigest`,
  /** On a cron, RFC 3339: when the source was asked last. */
  lastCronTime: `${cdiGroup}/storage.import.lastCronTime`,
  /** On a cron, RFC 3339: when to ask next; a time in the past asks now. */
  nextCronTime: `${cdiGroup}/storage.import.nextCronTime`,
  /** On a cron: storage class of the version in use. */
  storageClass: `${cdiGroup}/storage.import.storageClass`,
  /** On a version, RFC 3339 with a fraction: when it was last what the cron offered. */
  lastUseTime: `${cdiGroup}/storage.import.lastUseTime`,
  /** On a data volume, any value: do not wait for a consumer. */
  immediateBinding: `${cdiGroup}/storage.bind.immediate.requested`,
  /** On a claim, any value: it is to be filled by an upload. */
  uploadTarget: `${cdiGroup}/storage.upload.target`,
  /** On a claim, `true`: somebody listens for what is to be uploaded into it. */
  podReady: `${cdiGroup}/storage.pod.ready`,
  /** On a claim: phase of the pod that fills it; `Succeeded` stays. */
  podPhase: `${cdiGroup}/storage.pod.phase`,
  /** On a claim: `kubevirt` for a disk, `archive` for files. */
  contentType: `${cdiGroup}/storage.contentType`,
  /** On a claim: how it was cloned, and why byte by byte. */
  cloneType: `${cdiGroup}/cloneType`,
  cloneFallbackReason: `${cdiGroup}/cloneFallbackReason`,
  /** On a cron, passed to the data volume. */
  retainPod: `${cdiGroup}/storage.pod.retainAfterCompletion`,
  /** On a snapshot: `Block` or `Filesystem`. */
  sourceVolumeMode: `${cdiGroup}/storage.import.sourceVolumeMode`,
  /** On a snapshot: the size to restore to. */
  advisedRestoreSize: `${cdiGroup}/storage.import.advisedRestoreSize`,
  /** On a storage profile, `true`: golden images of this class are written by one node. */
  singleWriter: `${cdiGroup}/useReadWriteOnceForDataImportCron`,
  /** On a storage profile, a quantity: the class makes no smaller volume. */
  leastSize: `${cdiGroup}/minimumSupportedPvcSize`,
  /** On a storage profile: the snapshot class for golden images. */
  snapshotClass: `${cdiGroup}/snapshotClassForDataImportCron`,
} as const;

/** Labels that tell consumers how to run what a golden image holds: the only ones that travel from object to object. */
const travelling = /^instancetype\.kubevirt\.io\/[\w.-]+$|^kubevirt\.io\/dynamic-credentials-support$/;

/** Labels a user may put on a cron that its versions and its data source carry as well. */
const fromCron = /^(?:[\w-]+\.)*kubevirt\.io\/[\w.-]+$/;

/** Whose key says who manages an object, which is nobody's to copy. */
const isManagement = (key: string): boolean => key.startsWith(`${cdiGroup}/`);

type Labels = Readonly<Record<string, string>>;

const pick = (labels: Labels | undefined, isWanted: (key: string) => boolean): Labels =>
  Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => isWanted(key)));

/** What a data source takes over from the volume or snapshot it points to. */
export const travellingLabels = (labels: Labels | undefined): Labels => pick(labels, (key) => travelling.test(key));

/** What versions and data source take over from their cron. */
export const cronLabels = (labels: Labels | undefined): Labels =>
  pick(labels, (key) => fromCron.test(key) && !isManagement(key));
