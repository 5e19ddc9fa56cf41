// Findings about an installation: what works, what does not, and what to do. Pure.
import type { Installation, KnativeObject, ObservedKind } from '#cli/doctor/observe.ts';
import type { Read } from '#shared/catalogue/objects.ts';
import type { Deployment, WebhookConfiguration } from '#shared/api/foreign/kubernetes.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { systemNamespace, transferQueue } from '#shared/api/names.ts';
import { defaultClassOf, isMadeByHand } from '#shared/populate/storage/profile.ts';

export interface Finding {
  readonly is: 'good' | 'unknown' | 'warning' | 'problem';
  readonly about: string;
  readonly message: string;
  /** What to do. */
  readonly remedy?: string;
}

/** The Deployment with every function, in a cluster without Knative. */
const single = 'bullion';

const installHint = 'install Bullion: kubectl apply -k infra (docs/install.md)';

const deniedWords = (what: string): string => `you may not list ${what}`;

const judgeKinds = (kinds: readonly ObservedKind[]): Finding => {
  const about = 'kinds';
  const missing = kinds.filter(({ troubles }) => troubles.is === 'missing').map(({ type }) => type.kind);
  const served = kinds.filter(({ troubles }) => troubles.is === 'read').length;
  if (missing.length === 0 && served < kinds.length)
    return { is: 'unknown', about, message: `you may list ${served} of ${kinds.length}` };
  if (missing.length === 0) return { is: 'good', about, message: `all ${served} are served` };
  return { is: 'problem', about, message: `not served: ${[...new Set(missing)].join(', ')}`, remedy: installHint };
};

const judgeWebhooks = (about: string, read: Read<WebhookConfiguration>, without: string): Finding => {
  if (read.is === 'denied') return { is: 'unknown', about, message: deniedWords('webhook configurations') };
  const hooks = read.is === 'read' ? read.items.flatMap(({ webhooks = [] }) => webhooks) : [];
  if (hooks.length === 0) return { is: 'problem', about, message: `not registered: ${without}`, remedy: installHint };
  const untrusted = hooks.filter(({ clientConfig: { caBundle = '' } }) => caBundle === '').map(({ name }) => name);
  if (untrusted.length > 0)
    return {
      is: 'problem',
      about,
      message: `no certificate authority for ${untrusted.join(', ')}: the API server cannot call it`,
      remedy: `cron-tick creates the certificate with its next sweep: kubectl logs -n ${systemNamespace} -l app.kubernetes.io/name=cron-tick; with cert-manager: kubectl describe certificate -n ${systemNamespace}`,
    };
  return { is: 'good', about, message: `${hooks.length} registered` };
};

const isRunning = ({ spec, status }: Deployment): boolean =>
  (spec?.replicas ?? 1) === 0 || (status?.readyReplicas ?? 0) > 0;

/** Functions and what brings events to them. On a laptop they are in one process, and nothing of it is an object of the cluster. */
const judgeWorkloads = ({ deployments, knative, validating }: Installation): readonly Finding[] => {
  const about = 'functions';
  const reads: readonly Read<unknown>[] = [deployments, ...knative.map(({ objects }) => objects)];
  if (reads.some(({ is }) => is === 'denied'))
    return [{ is: 'unknown', about, message: deniedWords(`what is in namespace ${systemNamespace}`) }];
  const isOneProcess =
    validating.is === 'read' &&
    validating.items.some(({ webhooks = [] }) => webhooks.some(({ clientConfig }) => clientConfig.url !== undefined));
  if (isOneProcess) return [{ is: 'good', about, message: 'run in one process, with the API server (npm start)' }];
  const isSingle = deployments.is === 'read' && deployments.items.some(({ metadata }) => metadata.name === single);
  const missing = isSingle ? [] : knative.filter(({ objects }) => objects.is === 'missing').map(({ kind }) => kind);
  if (missing.length > 0)
    return [
      {
        is: 'problem',
        about,
        message: `Knative is missing, or a part of it: the cluster does not serve ${missing.join(', ')}`,
        remedy:
          'install Knative Serving and Eventing, or the form without Knative: infra/overlays/single (docs/install.md)',
      },
    ];
  const objects = [
    ...(deployments.is === 'read' ? deployments.items : []).map((object) => ({ object, why: deploymentFault(object) })),
    ...knative
      .flatMap(({ objects: read }) => (read.is === 'read' ? read.items : []))
      .map((object) => ({ object, why: conditionFault(object) })),
  ];
  if (objects.length === 0)
    return [{ is: 'problem', about, message: `none in namespace ${systemNamespace}`, remedy: installHint }];
  const bad = objects.flatMap(({ object, why }): readonly Finding[] =>
    why === undefined
      ? []
      : [
          {
            is: 'problem',
            about,
            message: `${object.kind} ${object.metadata.name} is not ready: ${why}`,
            remedy: `kubectl describe ${object.kind.toLowerCase()} ${object.metadata.name} -n ${systemNamespace}`,
          },
        ],
  );
  return bad.length > 0 ? bad : [{ is: 'good', about, message: `${objects.length} objects are ready` }];
};

const deploymentFault = (deployment: Deployment): string | undefined =>
  isRunning(deployment) ? undefined : 'no pod of it is ready';

const conditionFault = ({ status }: KnativeObject): string | undefined => {
  const ready = findCondition(status?.conditions, 'Ready');
  if (ready?.status === 'True') return undefined;
  return ready?.message ?? ready?.reason ?? 'it has no status: its controller does not run';
};

const judgeClasses = ({ classes, snapshotClasses }: Installation): readonly Finding[] => {
  const about = 'storage';
  if (classes.is !== 'read') return [{ is: 'unknown', about, message: deniedWords('storage classes') }];
  if (classes.items.length === 0)
    return [{ is: 'problem', about, message: 'there is no StorageClass', remedy: 'install a CSI driver and a class' }];
  const chosen = defaultClassOf(classes.items);
  const standard: Finding =
    chosen === undefined
      ? {
          is: 'warning',
          about,
          message: 'no StorageClass is the default: images and disks that name none stay pending',
          remedy:
            'kubectl annotate storageclass <name> storageclass.kubernetes.io/is-default-class=true, or name one in each object',
        }
      : { is: 'good', about, message: `${classes.items.length} classes, ${chosen.metadata.name} is the default` };
  if (snapshotClasses.is === 'denied') return [standard];
  const drivers = new Set(snapshotClasses.is === 'read' ? snapshotClasses.items.map(({ driver }) => driver) : []);
  const without = classes.items.filter((one) => !isMadeByHand(one) && !drivers.has(one.provisioner));
  if (without.length === 0) return [standard];
  return [
    standard,
    {
      is: 'warning',
      about,
      message: `no VolumeSnapshotClass for ${without.map(({ metadata, provisioner }) => `${metadata.name} (${provisioner})`).join(', ')}: their disks cannot be cloned by snapshot`,
      remedy: 'if the driver supports snapshots, create a VolumeSnapshotClass with its name',
    },
  ];
};

/** Limits that cannot be read limit nothing; rules of registries that cannot be read stop what is fetched from registries. */
const judgeConfigs = ({ configFaults }: Installation): readonly Finding[] =>
  configFaults.is !== 'read'
    ? []
    : configFaults.items.map(({ configMap, message }) => ({
        is: configMap === transferQueue ? 'warning' : 'problem',
        about: configMap === transferQueue ? 'queue' : 'registries',
        message,
        remedy: `kubectl edit configmap ${configMap} -n ${systemNamespace}`,
      }));

/** Objects that are named in each finding; the rest is counted. */
const mostNamed = 10;

const titles = {
  failed: 'failed',
  unobserved: 'not reconciled',
  deleting: 'not deleted',
} as const;

const remedies = {
  failed: 'bullion why <object> says what to do',
  unobserved: `functions receive no events: kubectl get broker,trigger,ksvc,deploy -n ${systemNamespace}`,
  deleting: 'bullion why <object> says what each waits for; a finalizer of another program is removed by that program',
} as const;

const judgeObjects = (kinds: readonly ObservedKind[]): readonly Finding[] => {
  const about = 'objects';
  const troubles = kinds.flatMap(({ troubles: read }) => (read.is === 'read' ? read.items : []));
  const denied = kinds.filter(({ troubles: read }) => read.is === 'denied').map(({ type }) => type.kind);
  const count = kinds.reduce((all, kind) => all + kind.count, 0);
  const unknown: readonly Finding[] =
    denied.length === 0
      ? []
      : [
          {
            is: 'unknown',
            about,
            message: `${deniedWords([...new Set(denied)].join(', '))}; -n looks in one namespace`,
          },
        ];
  const found = (['unobserved', 'deleting', 'failed'] as const).flatMap((is): readonly Finding[] => {
    const some = troubles.filter((trouble) => trouble.is === is);
    if (some.length === 0) return [];
    const named = some.slice(0, mostNamed).map(({ object, message }) => `\n  ${object}: ${message}`);
    const rest = some.length - named.length;
    const message = `${some.length} of ${count} ${titles[is]}:${named.join('')}${rest > 0 ? `\n  and ${rest} more` : ''}`;
    return [{ is: is === 'unobserved' ? 'problem' : 'warning', about, message, remedy: remedies[is] }];
  });
  return found.length + unknown.length > 0
    ? [...found, ...unknown]
    : [{ is: 'good', about, message: `${count}, none failed or stuck` }];
};

/** In the order in which one thing needs the other. */
export const judgeInstallation = (installation: Installation): readonly Finding[] => [
  judgeKinds(installation.kinds),
  judgeWebhooks('mutation', installation.mutating, 'defaults of objects are not filled in'),
  judgeWebhooks(
    'validation',
    installation.validating,
    'invalid objects are accepted, and golden images can be deleted',
  ),
  ...judgeWorkloads(installation),
  ...judgeClasses(installation),
  ...judgeConfigs(installation),
  ...judgeObjects(installation.kinds),
];
