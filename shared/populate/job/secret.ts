// The secret part of a transfer Job: credentials of its spec and the private key that signs its reports. Both are in a Secret that the pods
// mount and the Job owns; the Job itself holds the rest, and the public key. Called by backends/start-transfer.ts.
import type { Container, EnvVar, Job, Secret } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { sealSpec, secretFiles } from '#shared/transfer/sealed.ts';

/** Mount path in the pod. */
const mountPath = '/transfer-secret';

export interface SealedJob {
  /** Free of secrets. Suspended: its Secret has it as owner and can only be created after it. */
  readonly job: Job;
  /** By file name. */
  readonly files: Readonly<Record<string, string>>;
}

export interface ReportKeys {
  /** PEM. */
  readonly privateKey: string;
  /** As in the annotation. */
  readonly publicKey: string;
}

/** Whether a URL may contain credentials. */
const mayHoldCredential = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && url.username + url.password + url.search !== '';
};

const isOpen = ({ name, value = '' }: EnvVar): boolean => name !== 'BULLION_TRANSFER' && !mayHoldCredential(value);

const sealContainer = (container: Container, spec: string): Container => ({
  ...container,
  env: [
    { name: 'BULLION_TRANSFER', value: spec },
    ...(container.env ?? []).filter(isOpen),
    { name: 'BULLION_SECRET_DIR', value: mountPath },
  ],
  volumeMounts: [...(container.volumeMounts ?? []), { name: 'transfer-secret', mountPath, readOnly: true }],
});

/** `job` is the result of `buildTransferJob`. */
export const sealJob = (job: Job, secretName: string, keys: ReportKeys): SealedJob => {
  const { template } = job.spec;
  const env = template.spec.containers.flatMap((container) => container.env ?? []);
  const { open, sealed } = sealSpec(JSON.parse(env.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '{}'));
  const moved = env.filter((variable) => !isOpen(variable) && variable.name !== 'BULLION_TRANSFER');
  return {
    job: {
      ...job,
      metadata: {
        ...job.metadata,
        labels: { ...job.metadata.labels, [labels.starting]: 'true' },
        annotations: { ...job.metadata.annotations, [annotations.reportKey]: keys.publicKey },
      },
      spec: {
        ...job.spec,
        suspend: true,
        template: {
          ...template,
          spec: {
            ...template.spec,
            containers: template.spec.containers.map((container) => sealContainer(container, open)),
            volumes: [...(template.spec.volumes ?? []), { name: 'transfer-secret', secret: { secretName } }],
          },
        },
      },
    },
    files: {
      [secretFiles.sealed]: sealed,
      [secretFiles.reportKey]: keys.privateKey,
      ...Object.fromEntries(moved.map(({ name, value = '' }) => [name, value])),
    },
  };
};

/** `made` is the Job as created in the API. */
export const buildJobSecret = (made: Job, name: string, files: SealedJob['files']): Secret => {
  const {
    namespace,
    labels: { [labels.starting]: _, ...marks } = {},
    annotations: notes = {},
    uid = '',
  } = made.metadata;
  const { [annotations.reportKey]: _key, ...ownerNotes } = notes;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...marks, [labels.role]: 'transfer-secret' },
      annotations: ownerNotes,
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: made.metadata.name, uid, controller: true }],
    },
    type: 'bullion.dev/transfer',
    data: Object.fromEntries(Object.entries(files).map(([file, text]) => [file, Buffer.from(text).toString('base64')])),
  };
};
