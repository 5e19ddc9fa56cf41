// Stock Kubernetes kinds: only the fields we read or write.
import type { Condition, KubeObject, ResourceType } from '#shared/api/object.ts';

export type VolumeMode = 'Filesystem' | 'Block';
export type AccessMode = 'ReadWriteOnce' | 'ReadWriteMany' | 'ReadOnlyMany' | 'ReadWriteOncePod';

export interface TypedLocalReference {
  readonly apiGroup?: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

export interface PersistentVolumeClaim extends KubeObject {
  readonly spec: {
    readonly accessModes?: readonly AccessMode[];
    readonly volumeMode?: VolumeMode;
    readonly storageClassName?: string;
    readonly volumeName?: string;
    readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
    readonly dataSource?: TypedLocalReference;
    readonly dataSourceRef?: TypedLocalReference;
  };
  readonly status?: {
    readonly phase?: 'Pending' | 'Bound' | 'Lost';
    readonly capacity?: Readonly<Record<string, string>>;
    readonly conditions?: readonly Condition[];
  };
}

export interface SecretReference {
  readonly name?: string;
  readonly namespace?: string;
}

export interface PersistentVolume extends KubeObject {
  readonly spec: {
    readonly capacity: Readonly<Record<string, string>>;
    readonly accessModes: readonly AccessMode[];
    readonly volumeMode?: VolumeMode;
    readonly storageClassName?: string;
    readonly persistentVolumeReclaimPolicy?: 'Delete' | 'Retain';
    /** Nodes that can reach it. Default: all nodes. */
    readonly nodeAffinity?: unknown;
    readonly claimRef?: {
      readonly apiVersion?: string;
      readonly kind?: string;
      readonly namespace: string;
      readonly name: string;
      /** Default: any object with that name. */
      readonly uid?: string;
    };
    readonly csi?: {
      readonly driver: string;
      readonly volumeHandle: string;
      readonly volumeAttributes?: Readonly<Record<string, string>>;
      readonly nodeStageSecretRef?: SecretReference;
      readonly nodePublishSecretRef?: SecretReference;
      readonly nodeExpandSecretRef?: SecretReference;
      readonly controllerExpandSecretRef?: SecretReference;
    };
  };
  readonly status?: { readonly phase?: 'Pending' | 'Available' | 'Bound' | 'Released' | 'Failed' };
}

export interface Node extends KubeObject {
  readonly status?: { readonly nodeInfo?: { readonly architecture?: string } };
}

export interface StorageClass extends KubeObject {
  readonly provisioner: string;
  readonly reclaimPolicy?: 'Delete' | 'Retain';
  readonly volumeBindingMode?: 'Immediate' | 'WaitForFirstConsumer';
  readonly allowVolumeExpansion?: boolean;
  readonly parameters?: Readonly<Record<string, string>>;
}

/** A storage driver that speaks CSI, by the name of its provisioner. */
export interface CsiDriver extends KubeObject {
  readonly spec: { readonly attachRequired?: boolean };
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean };
    readonly configMapKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean };
    readonly fieldRef?: { readonly fieldPath: string };
  };
}

export interface Container {
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly volumeDevices?: readonly { readonly name: string; readonly devicePath: string }[];
  readonly resources?: Readonly<Record<string, unknown>>;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly terminationMessagePath?: string;
  readonly terminationMessagePolicy?: 'File' | 'FallbackToLogsOnError';
}

export interface PodVolume {
  readonly name: string;
  readonly persistentVolumeClaim?: { readonly claimName: string; readonly readOnly?: boolean };
  readonly emptyDir?: Readonly<Record<string, unknown>>;
  readonly secret?: { readonly secretName: string; readonly optional?: boolean };
  readonly configMap?: { readonly name: string; readonly optional?: boolean };
  readonly projected?: { readonly sources: readonly { readonly serviceAccountToken: object }[] };
  readonly nfs?: { readonly server: string; readonly path: string; readonly readOnly?: boolean };
  readonly ephemeral?: { readonly volumeClaimTemplate: Pick<PersistentVolumeClaim, 'spec'> };
}

export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: 'Exists' | 'Equal' | undefined;
  readonly value?: string | undefined;
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute' | undefined;
  readonly tolerationSeconds?: number | undefined;
}

export interface PodSpec {
  readonly activeDeadlineSeconds?: number;
  readonly restartPolicy?: 'Never' | 'OnFailure' | 'Always';
  readonly containers: readonly Container[];
  readonly volumes?: readonly PodVolume[];
  readonly serviceAccountName?: string;
  readonly imagePullSecrets?: readonly { readonly name: string }[];
  readonly priorityClassName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly automountServiceAccountToken?: boolean;
  readonly enableServiceLinks?: boolean;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly terminationGracePeriodSeconds?: number;
  readonly nodeName?: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly image?: string;
  readonly imageID?: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly restartCount?: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: { readonly startedAt?: string };
    readonly terminated?: {
      readonly exitCode: number;
      readonly reason?: string;
      readonly message?: string;
      readonly startedAt?: string;
      readonly finishedAt?: string;
    };
  };
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec;
  readonly status?: {
    readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    readonly podIP?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly startTime?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** Condition of a pod that the cluster ended: an eviction, a preemption, a node that is drained or lost. */
export const disruptionTarget = 'DisruptionTarget';

export interface Job extends KubeObject {
  readonly spec: {
    readonly backoffLimit?: number;
    readonly activeDeadlineSeconds?: number;
    readonly ttlSecondsAfterFinished?: number;
    readonly suspend?: boolean;
    readonly podFailurePolicy?: {
      readonly rules: readonly {
        readonly action: 'Ignore' | 'FailJob' | 'Count';
        readonly onPodConditions?: readonly { readonly type: string; readonly status: string }[];
      }[];
    };
    readonly template: {
      readonly metadata?: {
        readonly labels?: Readonly<Record<string, string>>;
        readonly annotations?: Readonly<Record<string, string>>;
      };
      readonly spec: PodSpec;
    };
  };
  readonly status?: {
    readonly active?: number;
    readonly ready?: number;
    readonly terminating?: number;
    readonly succeeded?: number;
    readonly failed?: number;
    readonly startTime?: string;
    readonly completionTime?: string;
    readonly conditions?: readonly Condition[];
  };
}

/** `core/v1` Event, as `kubectl describe` shows it. */
export interface KubeEvent extends KubeObject {
  readonly involvedObject: {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly uid?: string;
  };
  readonly reason?: string;
  readonly message?: string;
  readonly type?: 'Normal' | 'Warning';
  readonly count?: number;
  readonly firstTimestamp?: string;
  readonly lastTimestamp?: string;
  readonly eventTime?: string;
  readonly series?: { readonly lastObservedTime?: string };
  readonly source?: { readonly component?: string };
}

export interface Namespace extends KubeObject {
  readonly spec?: { readonly finalizers?: readonly string[] };
  readonly status?: { readonly phase?: 'Active' | 'Terminating'; readonly conditions?: readonly Condition[] };
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** base64 values. */
  readonly data?: Readonly<Record<string, string>>;
}

/** Its values as text, by key. */
export const secretTexts = ({ data = {} }: Secret): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]));

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
}

const core = <T extends KubeObject>(kind: string, plural: string, namespaced = true): ResourceType<T> => ({
  group: '',
  version: 'v1',
  kind,
  plural,
  namespaced,
});

export const persistentVolumeClaims = core<PersistentVolumeClaim>('PersistentVolumeClaim', 'persistentvolumeclaims');
export const persistentVolumes = core<PersistentVolume>('PersistentVolume', 'persistentvolumes', false);
export const pods = core<Pod>('Pod', 'pods');
export const kubeEvents = core<KubeEvent>('Event', 'events');
export const nodes = core<Node>('Node', 'nodes', false);
export const namespaces = core<Namespace>('Namespace', 'namespaces', false);
export const secrets = core<Secret>('Secret', 'secrets');
export const configMaps = core<ConfigMap>('ConfigMap', 'configmaps');
export const jobs: ResourceType<Job> = { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true };
export const storageClasses: ResourceType<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
};
export const csiDrivers: ResourceType<CsiDriver> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'CSIDriver',
  plural: 'csidrivers',
  namespaced: false,
};

/** scheduling.k8s.io: only the fields we read. */
export interface PriorityClass extends KubeObject {
  readonly value: number;
}

export const priorityClasses: ResourceType<PriorityClass> = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
};
