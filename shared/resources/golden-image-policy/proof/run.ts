// One check or boot of one version: what it is called, what it runs on, and how far that has come. Pure.
import { createHash } from 'node:crypto';
import type { Boot, Check } from '#shared/api/bullion/verify.ts';
import type { CheckStatus } from '#shared/api/bullion/golden-image-policy.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { type DataVolume, dataVolumeKind, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { checkRole } from '#shared/api/names.ts';
import { apiVersionOf, childMetadata, type ObjectMeta, type OwnerReference } from '#shared/api/object.ts';
import { type Action, create } from '#shared/populate/actions.ts';
import { classOf } from '#shared/resources/data-import-cron/version.ts';
import type { PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import { formatOf } from '#shared/resources/golden-image-policy/sources.ts';
import type { FoundVersion } from '#shared/resources/golden-image-policy/versions.ts';
import { parseSpan } from '#shared/runtime/age.ts';

/** What spec.verify asks of each version, beside its signature. */
export type Proof =
  | { readonly is: 'check'; readonly name: string; readonly spec: Check }
  | { readonly is: 'boot'; readonly name: 'boot'; readonly spec: Boot };

export const proofsOf = ({ object: { spec } }: PolicyResource): readonly Proof[] => [
  ...(spec.verify?.boot === undefined ? [] : [{ is: 'boot', name: 'boot', spec: spec.verify.boot } as const]),
  ...(spec.verify?.checks ?? []).map((check): Proof => ({ is: 'check', name: check.name, spec: check })),
];

export interface ProofRun<P extends Proof = Proof> {
  readonly policy: PolicyResource;
  readonly proof: P;
  readonly found: FoundVersion;
  readonly digest: string;
  /** Fingerprint of what is asked. */
  readonly rule: string;
  /** Its result so far, for the same digest and rule. */
  readonly before: CheckStatus | undefined;
  /** Of the clone, and of what runs on it; another one for each attempt. */
  readonly name: string;
}

/** Where a run is, as its objects say. */
export type Progress =
  | { readonly is: 'passed' | 'failed'; readonly reason: string; readonly message: string; readonly output?: string }
  | { readonly is: 'running'; readonly reason: string; readonly message: string; readonly action?: Action }
  /** Nothing is known of the version: to be tried again. */
  | { readonly is: 'not run'; readonly reason: string; readonly message: string; readonly output?: string };

export const fingerprintOf = (rule: object): string =>
  createHash('sha256').update(JSON.stringify(rule)).digest('hex').slice(0, 12);

export const runOf = (
  policy: PolicyResource,
  proof: Proof,
  { found, digest }: { readonly found: FoundVersion; readonly digest: string },
): ProofRun => {
  const rule = fingerprintOf(proof.spec);
  const before = policy.state.versions
    .find(({ name }) => name === found.name)
    ?.checks?.find((check) => check.name === proof.name && check.rule === rule && check.digest === digest);
  const identity = fingerprintOf([policy.ref.uid, found.name, proof.name, rule, digest]);
  return { policy, proof, found, digest, rule, before, name: `check-${identity}-${(before?.attempts ?? 0) + 1}` };
};

const minute = 60_000;
/** Milliseconds that a pod or a machine has before it runs, beside its time-out. */
export const startMs = 10 * minute;
const mostBackOff = 30 * minute;

/** Milliseconds before the next try, after so many that could not be carried out. */
export const backOffMs = (attempts: number): number => Math.min(mostBackOff, minute * 2 ** Math.max(0, attempts - 1));

/** A clock that went back does not delay it any longer than `most` milliseconds. */
export const isDue = (
  before: Pick<CheckStatus, 'nextTry'> | undefined,
  now: number,
  most: number = mostBackOff,
): boolean => {
  const left = Date.parse(before?.nextTry ?? '') - now;
  return !(left > 0 && left <= most);
};

export const millisecondsOf = (span: string | undefined, otherwise: number): number =>
  (span === undefined ? undefined : parseSpan(span)) ?? otherwise;

/** Of a child of the policy. */
export const metadataOf = ({ policy, name }: ProofRun): ObjectMeta => childMetadata(policy.ref, checkRole, name);

/** What runs on a clone goes with it. */
export const ownedBy = ({ metadata: { name, uid = '' } }: DataVolume): readonly OwnerReference[] => {
  const { type } = dataVolumeKind;
  return [{ apiVersion: apiVersionOf(type), kind: type.kind, name, uid }];
};

/** The golden volume itself is never given away: a clone may be written to, and started. */
const buildClone = (run: ProofRun): DataVolume => {
  const { found, policy } = run;
  const metadata = metadataOf(run);
  const storageClassName = classOf(found.version);
  const format = formatOf(found.cron, found.name, found.version);
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [cdiAnnotations.immediateBinding]: 'true' },
    },
    spec: {
      source: { [format === 'snapshot' ? 'snapshot' : 'pvc']: { namespace: policy.namespace, name: found.name } },
      storage: storageClassName === undefined ? {} : { storageClassName },
    },
  };
};

export const startClone = (run: ProofRun): Progress => ({
  is: 'running',
  reason: 'Cloning',
  message: 'the version is being cloned',
  action: create(dataVolumes, buildClone(run)),
});

/** Why it is not there yet. */
export const cloneProgress = ({ status }: DataVolume): Progress => {
  const conditions = status?.conditions ?? [];
  const [trouble] = conditions.filter(({ type, message = '' }) => type === 'Running' && message !== '');
  if (status?.phase === 'Failed')
    return {
      is: 'not run',
      reason: 'CloneFailed',
      message: `the version could not be cloned: ${trouble?.message ?? 'its data volume failed'}`,
    };
  return {
    is: 'running',
    reason: 'Cloning',
    message: `the version is being cloned${trouble?.message === undefined ? '' : `: ${trouble.message}`}`,
  };
};
