// Labels, annotations and finalizers of the product.

export const labels = {
  /** On every child: UID of its owner. */
  ownerUid: 'bullion.dev/owner-uid',
  /** On every child: `<kind>.<group>` of its owner, so that the owner can be found from the child alone. */
  ownerKind: 'bullion.dev/owner-kind',
  /** On every child: its role for its owner (`volume`, `disk`, `prime`, `kept`, `snapshot`, `inspect`, `import`, `keep`). */
  role: 'bullion.dev/role',
  /** On an object made from another one: `sourceLabel` of that one, to find the objects that wait for it. */
  source: 'bullion.dev/source',
  /** On a golden volume or snapshot: identifies its content in its storage class, so that the same bytes are not fetched again. */
  content: 'bullion.dev/content',
  /** On a version of a golden image: like `content`, for the validator that its last poll returned instead of a digest, such as an ETag. */
  askedContent: 'bullion.dev/asked-content',
  /** On a golden copy, which is a version in another storage class: UID of the claim or snapshot of that version. */
  copyOf: 'bullion.dev/copy-of',
  /** On a DataSource: the GoldenImagePolicy that it is or was a channel of. */
  policy: 'bullion.dev/golden-image-policy',
  /** On an image of any kind, and on what holds one: `true` refuses its deletion. */
  protected: 'bullion.dev/protected',
  /** On an image: its storage class, or a digest if the name is not a valid label value. */
  storageClass: 'bullion.dev/storage-class',
  /** On a claim that an image is exported from: UID of the image. */
  exporting: 'bullion.dev/exporting',
  /** On a transfer Job that is still suspended, because its Secret is not created yet. */
  starting: 'bullion.dev/starting',
  /** On a transfer Job that the limits on transfers apply to: `waiting` or `running`, until it has ended. */
  queue: 'bullion.dev/queue',
  /** On an event source: the cluster may not have the watched kind. */
  optional: 'bullion.dev/optional',
} as const;

/** Value of the owner label on what holds the bytes of a deleted image: no object has that UID. */
export const deletedOwner = 'deleted';

/** The role of clones of golden images that are checked, and of what runs on them. */
export const checkRole = 'check';

export const annotations = {
  /** On every child: name of the owner (which may be too long for a label value). */
  ownerName: 'bullion.dev/owner-name',
  /** On every child: namespace of the owner, which may differ from the child's. */
  ownerNamespace: 'bullion.dev/owner-namespace',
  /** On an image whose kind has no such field: a Secret of its namespace with the credentials of its source. */
  secretRef: 'bullion.dev/secret-ref',
  /** On an image whose kind has no such field: a ConfigMap of its namespace with certificate authorities of its source. */
  certConfigMap: 'bullion.dev/cert-config-map',
  /** On an image or data volume: identity of its service account in the cloud that has its source. */
  workloadIdentity: 'bullion.dev/workload-identity',
  /** On an image: any new value retries a failed import. */
  retry: 'bullion.dev/retry',
  /** On an object that is filled by an upload: the deadline of the pause that its client has ended; its Job is started again. */
  resumedPause: 'bullion.dev/resumed-pause',
  /** On a golden volume: the inspection before the volume was created (JSON); an import is verified against it. */
  inspected: 'bullion.dev/inspected',
  /** On an image that waits for an upload: the announced file (an Inspection as JSON). Its volume is sized for that. */
  offered: 'bullion.dev/offered',
  /** On a version of a golden image: the digest or validator that identifies its content. */
  content: 'bullion.dev/content',
  /** On a version of a golden image, and on the DataSource of a channel: that it is deprecated or obsolete (JSON). */
  deprecation: 'bullion.dev/deprecation',
  /** On a golden copy: its cron, the UID of its storage class, and what the disk was made from that it was made for (JSON). */
  goldenCopy: 'bullion.dev/golden-copy',
  /** On a cron without a policy: storage classes that each version is copied into at once, with commas between them. */
  prewarm: 'bullion.dev/prewarm',
  /** On a cron without a policy: `true` has its versions copied once into the class of each first disk. */
  copyOnFirstUse: 'bullion.dev/copy-on-first-use',
  /**
   * On a version of a golden image: since when nothing keeps it, RFC 3339; it goes once it cannot be brought back any more. On the object with the bytes
   * of a deleted image: that image, and until when it can be brought back (JSON).
   */
  deleted: 'bullion.dev/deleted',
  /** On the persistent volume or snapshot content of a version that can be brought back: how (JSON). Its own reclaim policy is in there. */
  kept: 'bullion.dev/kept',
  /** On a cron: names of deleted versions to bring back, with commas between them. On an image: the object with the bytes of the deleted image that it is. */
  undelete: 'bullion.dev/undelete',
  /** On an image: for how long it can be brought back after its deletion, such as `7d`. Default: not at all. */
  undeleteFor: 'bullion.dev/undelete-for',
  /** On a disk: `true` has it made from an obsolete version. */
  allowObsolete: 'bullion.dev/allow-obsolete',
  /** On the Lease of a content: `true` once another volume waits for it. */
  awaited: 'bullion.dev/awaited',
  /** On the Lease of a content, and on the claim being filled: why the same bytes are fetched again. */
  fetchReason: 'bullion.dev/fetch-reason',
  /** On a golden volume: the class of its snapshot, if its StorageProfile named one when the volume was created. */
  snapshotClass: 'bullion.dev/snapshot-class',
  /** On a golden volume: what it was filled from (JSON), written once its bytes are verified and flushed. */
  populated: 'bullion.dev/populated',
  /** On a child of one attempt: its number, from 1. */
  attempt: 'bullion.dev/attempt',
  /** On a claim that an image is exported from: `<namespace>/<name>` of the image. */
  exporting: 'bullion.dev/exporting',
  /** On a volume made from another one: the clone strategy and its reason (JSON). */
  clone: 'bullion.dev/clone',
  /** On a persistent volume that is moved to another namespace, and on a claim that gets the volume of a prime claim: data of the claim (JSON). */
  handover: 'bullion.dev/handover',
  /** On a DataSource: namespaces that may clone what it stands for: `*`, or a selector of their labels. */
  offeredTo: 'bullion.dev/offered-to',
  /** On a DataSource that was made for such a namespace: `<namespace>/<name>` of the one that is offered. */
  offeredBy: 'bullion.dev/offered-by',
  /** On an object with a source in another namespace: the permissions of its author (JSON). Written only by admission. */
  granted: 'bullion.dev/granted',
  /** On objects made from a template of HyperConverged or SSP: the owner of the template. */
  template: 'bullion.dev/template',
  /** On a cron made from a template: fingerprint of the template's spec. */
  templateSpec: 'bullion.dev/template-spec',
  /** On a DataSource of a template: whether it is updated automatically, and why. */
  autoUpdate: 'bullion.dev/auto-update',
  /** On an image: `true` keeps it in the backup target, as `spec.backup` does. */
  backup: 'bullion.dev/backup',
  /** On an image restored from a backup: location of its disk and its metadata (JSON). */
  restore: 'bullion.dev/restore',
  /** On a backup Job: the target it writes to. */
  backupTarget: 'bullion.dev/backup-target',
  /** On a transfer Job: public key (Ed25519, base64 of its DER) that verifies its progress reports. */
  reportKey: 'bullion.dev/report-key',
  /** On a transfer Job: host of its source, for the limit on transfers from one host. */
  sourceHost: 'bullion.dev/source-host',
  /** On a transfer Job that waits for others: its place in the queue, for people. */
  queuePlace: 'bullion.dev/queue-place',
  /** On the Lease of the queue: Jobs that were admitted and may still be suspended, and the times of recent admissions (JSON). */
  admitted: 'bullion.dev/admitted',
  /** On a cron with an empty schedule, if a CDI is installed: the schedule of our polls. */
  schedule: 'bullion.dev/schedule',
  /** On such a cron: result of the latest poll, and time of the next one (JSON). */
  poll: 'bullion.dev/poll',
  /** On the Lease of a host that limits requests: end of the pause. RFC 3339. */
  heldUntil: 'bullion.dev/held-until',
} as const;

export const finalizers = {
  /** Held while an image has children to remove. */
  image: 'bullion.dev/image',
  /** Held by a volume that may have children in another namespace, where owner references are not possible. */
  clone: 'bullion.dev/clone',
  /** Held by an export while the store may contain an incomplete upload. */
  export: 'bullion.dev/export',
  /** Held by an image in a backup target, until its deletion is recorded. Never waits for the target. */
  backup: 'bullion.dev/backup',
  /** Held while a cron has objects to remove. */
  cron: 'bullion.dev/cron',
  /** Held by a virtual machine whose disks are created by Bullion, until those to delete with it are gone. */
  machine: 'bullion.dev/machine-disks',
} as const;

/** Identifies our writes (`fieldManager`, Event source, prefix of children). */
export const fieldManager = 'bullion';

/** As in package.json: the tag of the images that manifests name. */
export const release = '0.1.0';

/** Namespace of the product. */
export const systemNamespace = 'bullion-system';

/** ConfigMap in our namespace: event sources for kinds that a cluster may not have, to be created once it does. */
export const optionalSources = 'optional-sources';

/** ConfigMap in our namespace: how many transfers run at once. Also the name of the Lease that makes passes over the queue exclude each other. */
export const transferQueue = 'transfer-queue';

/** ConfigMap in each namespace that limits apply to: what they are, and what is used. */
export const tenantLimits = 'bullion-limits';

/** The ConfigMap in Bullion's namespace with mirrors: of registries in one key, of files in the other. */
export const registriesConfig = { name: 'registries', key: 'registries.conf', filesKey: 'mirrors.toml' } as const;

const serviceAccount = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`;

/**
 * Users of the garbage collector and the namespace controller. Their deletions must never be denied, or nothing could be deleted any more.
 * `system:kube-controller-manager` is used for both if controllers have no accounts of their own.
 */
export const clusterControllers = [
  serviceAccount('kube-system', 'generic-garbage-collector'),
  serviceAccount('kube-system', 'namespace-controller'),
  'system:kube-controller-manager',
] as const;

/** Users of the controllers that create claims from the templates of StatefulSets and pods. They act for the workloads of the namespace, with permissions of their own. */
export const workloadControllers: readonly string[] = [
  serviceAccount('kube-system', 'statefulset-controller'),
  serviceAccount('kube-system', 'ephemeral-volume-controller'),
  'system:kube-controller-manager',
];

/** Prefix of the user names of all our functions. */
export const ownAccountPrefix = serviceAccount(systemNamespace, '');

/**
 * Namespaces without our admission, so that its outage never prevents the cluster, Knative or our own pods from recovering. Marks that only
 * admission may write are not trusted there.
 */
export const unguardedNamespaces = [
  'kube-system',
  'kube-public',
  'kube-node-lease',
  'knative-eventing',
  'knative-serving',
  'cert-manager',
  systemNamespace,
] as const;

const services = ['validate', 'mutate'] as const;

/** The certificate of the admission services: its location and the objects that must trust it. */
export const admissionCertificate = {
  /** Name of both webhook configurations. */
  configuration: 'bullion',
  /** Secret mounted by the pods. */
  serverSecret: 'admission-tls',
  /** Secret of the issuing authority; it is not mounted anywhere. */
  authoritySecret: 'admission-ca',
  hosts: services.flatMap((name) => [`${name}.${systemNamespace}.svc`, `${name}.${systemNamespace}.svc.cluster.local`]),
} as const;
