// The words of the product on the wire: labels, annotations, finalizers.

export const labels = {
  /** On every child: the UID of the object it belongs to. */
  ownerUid: 'bullion.dev/owner-uid',
  /** On every child: `<kind>.<group>` of the object it belongs to, so that the owner can be found from the child alone. */
  ownerKind: 'bullion.dev/owner-kind',
  /** On every child: what it is to its owner (`volume`, `disk`, `kept`, `snapshot`, `inspect`, `import`, `keep`). */
  role: 'bullion.dev/role',
  /** On an object that is made from another one: `sourceLabel` of that one, so that those who wait for it are found. */
  source: 'bullion.dev/source',
  /** On a golden volume or snapshot: names what it holds in its storage class, so that nobody fetches the same again. */
  content: 'bullion.dev/content',
  /** On a version of a golden image: as `content`, for what stood for its digest when its source was asked last, such as an ETag. */
  askedContent: 'bullion.dev/asked-content',
  /** On a DataSource: the GoldenImagePolicy that it is or was a channel of. */
  policy: 'bullion.dev/golden-image-policy',
  /** On an image: the storage class it is kept in, or a digest where the name is no label value. */
  storageClass: 'bullion.dev/storage-class',
  /** On a claim that an image is being made from: UID of the image. */
  exporting: 'bullion.dev/exporting',
  /** On a transfer Job that is not let run yet, since its Secret is still to be made. */
  starting: 'bullion.dev/starting',
  /** On an event source: the kind it watches may be missing in a cluster. */
  optional: 'bullion.dev/optional',
} as const;

export const annotations = {
  /** On every child: name of the owner (a label value may be too short for it). */
  ownerName: 'bullion.dev/owner-name',
  /** On every child: namespace of the owner, which may differ from the child's. */
  ownerNamespace: 'bullion.dev/owner-namespace',
  /** On an image: any new value starts a failed import again. */
  retry: 'bullion.dev/retry',
  /** On a golden volume: what an inspection found before the volume was made (JSON); an import is held against it. */
  inspected: 'bullion.dev/inspected',
  /** On an image that waits for an upload: what a client is about to send (an Inspection as JSON). Its volume is made for that. */
  offered: 'bullion.dev/offered',
  /** On a version of a golden image: the digest, or what stands for it, by which others find that it holds the same. */
  content: 'bullion.dev/content',
  /** On the lease of who fetches some content: `true` once somebody waits for it. */
  awaited: 'bullion.dev/awaited',
  /** On the lease of a content, and on the claim that is filled: why what others have or had is fetched again. */
  fetchReason: 'bullion.dev/fetch-reason',
  /** On a golden volume: the class that makes its snapshot, where its StorageProfile told when the volume was made. */
  snapshotClass: 'bullion.dev/snapshot-class',
  /** On a golden volume: what it was filled from (JSON), written once its bytes are verified and flushed. */
  populated: 'bullion.dev/populated',
  /** On a child that stands for one attempt: its number, from 1. */
  attempt: 'bullion.dev/attempt',
  /** On a claim that an image is being made from: `<namespace>/<name>` of the image. */
  exporting: 'bullion.dev/exporting',
  /** On a volume made from another one: how, and why so (JSON). */
  clone: 'bullion.dev/clone',
  /** On a persistent volume on its way from one namespace to another: what its claims knew (JSON). */
  handover: 'bullion.dev/handover',
  /** On an object made from what lies elsewhere: what its author was found to be allowed to use (JSON). Written by admission alone. */
  granted: 'bullion.dev/granted',
  /** On what was made from a template of HyperConverged or SSP: whose template it was. */
  template: 'bullion.dev/template',
  /** On a cron made from a template: fingerprint of the template's spec. */
  templateSpec: 'bullion.dev/template-spec',
  /** On a DataSource of a template: whether it keeps itself fresh, and why. */
  autoUpdate: 'bullion.dev/auto-update',
  /** On an image: `true` keeps it in the backup target, as `spec.backup` does. */
  backup: 'bullion.dev/backup',
  /** On an image made from a backup: where its disk and its metadata are kept (JSON). */
  restore: 'bullion.dev/restore',
  /** On a backup Job: the target it writes to. */
  backupTarget: 'bullion.dev/backup-target',
  /** On a transfer Job: public key (Ed25519, base64 of its DER) that its progress reports are checked with. */
  reportKey: 'bullion.dev/report-key',
  /** On a cron with an empty schedule, where a CDI is installed: when we are to poll for it. */
  schedule: 'bullion.dev/schedule',
  /** On such a cron: what the newest poll decided, and when the next one is (JSON). */
  poll: 'bullion.dev/poll',
  /** Of the Lease of a host that asked to be left alone: until when. RFC 3339. */
  heldUntil: 'bullion.dev/held-until',
} as const;

export const finalizers = {
  /** Held while an image still has children to remove. */
  image: 'bullion.dev/image',
  /** Held by a volume that may have children in another namespace, where no owner reference holds. */
  clone: 'bullion.dev/clone',
  /** Held by an export while the store may hold parts of what it has not completed. */
  export: 'bullion.dev/export',
  /** Held by an image that is in a backup target, until its deletion is noted. Waits for nobody. */
  backup: 'bullion.dev/backup',
  /** Held while a cron still has to remove what goes with it. */
  cron: 'bullion.dev/cron',
  /** Held by a virtual machine whose disks are made here, until those that go with it are gone. */
  machine: 'bullion.dev/machine-disks',
} as const;

/** Who our writes are made by (`fieldManager`, Event source, leader of children). */
export const fieldManager = 'bullion';

/** As in package.json: the tag of the images that manifests name. */
export const release = '0.1.0';

/** Where the product lives in a cluster. */
export const systemNamespace = 'bullion-system';

/** ConfigMap of our namespace: the event sources of kinds that a cluster may lack, to be made once they are there. */
export const optionalSources = 'optional-sources';

const serviceAccount = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`;

/**
 * Users that carry out what others decided: owner references and namespace deletion. They must never be refused, or nothing could be
 * removed any more. `system:kube-controller-manager` is both of them where controllers have no accounts of their own.
 */
export const clusterControllers = [
  serviceAccount('kube-system', 'generic-garbage-collector'),
  serviceAccount('kube-system', 'namespace-controller'),
  'system:kube-controller-manager',
] as const;

/** Prefix of the user names of all our functions. */
export const ownAccountPrefix = serviceAccount(systemNamespace, '');

/**
 * Namespaces whose objects pass without admission of ours, so that an outage of it can never keep the cluster, Knative or our own pods from
 * coming back. Nothing that admission has to vouch for is believed in them.
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

/** The certificate of the admission services, where it lies and who must trust it. */
export const admissionCertificate = {
  /** Name of both webhook configurations. */
  configuration: 'bullion',
  /** Secret the pods mount. */
  serverSecret: 'admission-tls',
  /** Secret of the authority that issued it; nobody mounts it. */
  authoritySecret: 'admission-ca',
  hosts: services.flatMap((name) => [`${name}.${systemNamespace}.svc`, `${name}.${systemNamespace}.svc.cluster.local`]),
} as const;
