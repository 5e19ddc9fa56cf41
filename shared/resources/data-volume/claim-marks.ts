// Labels and annotations of the claim of a DataVolume for KubeVirt and virtctl, and those of a claim or DataVolume that another client
// prepared: a restore, or a user. Pure.
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiGroup } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { ClaimRequest } from '#shared/populate/volume/volume.ts';

type Marks = Readonly<Record<string, string>>;
type Metadata = DataVolume['metadata'];

const populatedFor = `${cdiGroup}/storage.populatedFor`;
const prePopulated = `${cdiGroup}/storage.prePopulated`;
const checkStatic = `${cdiGroup}/storage.checkStaticVolume`;
const claimAdoption = `${cdiGroup}/allowClaimAdoption`;

type Source = DataVolume['spec']['source'];

/** `virtctl` checks on the claim whether an upload is possible. */
const uploadMark = (source: Source): Marks =>
  source?.upload === undefined ? {} : { [cdiAnnotations.uploadTarget]: '' };

/** Set when the upload can start. */
export const listeningMarks = (source: Source): Marks | undefined =>
  source?.upload === undefined
    ? undefined
    : { [cdiAnnotations.podReady]: 'true', [cdiAnnotations.podPhase]: 'Running' };

/** A DataVolume that was created for a claim of its name, and is owned by it, fills that claim. */
export const fillsClaim = ({ name, ownerReferences = [] }: Metadata, source: Source): ClaimRequest['fills'] => {
  const claim = ownerReferences.find((owner) => owner.kind === persistentVolumeClaims.kind && owner.name === name);
  if (claim === undefined || source?.upload === undefined) return undefined;
  return ({ metadata }) =>
    metadata.uid === claim.uid && metadata.annotations?.[cdiAnnotations.uploadTarget] !== undefined;
};

const wishes = ({ preallocation, priorityClassName }: DataVolume['spec']): Marks => ({
  ...(preallocation === undefined ? {} : { [`${cdiGroup}/storage.preallocation.requested`]: String(preallocation) }),
  ...(priorityClassName === undefined ? {} : { [`${cdiGroup}/storage.pod.priorityclassname`]: priorityClassName }),
});

const passedOn = (annotations: Marks = {}): Marks =>
  Object.fromEntries(
    Object.entries(annotations).filter(
      ([name]) => name !== 'kubectl.kubernetes.io/last-applied-configuration' && !name.startsWith('bullion.dev/'),
    ),
  );

export const claimMarks = ({ metadata, spec }: DataVolume): Marks => ({
  ...passedOn(metadata.annotations),
  [populatedFor]: metadata.name,
  [`${cdiGroup}/createdForDataVolume`]: metadata.uid ?? '',
  [cdiAnnotations.contentType]: spec.contentType ?? 'kubevirt',
  ...wishes(spec),
  ...uploadMark(spec.source),
});

/** Annotations that its clients wait for. */
export const filledMarks = (source: Source): Marks => ({
  [cdiAnnotations.podPhase]: 'Succeeded',
  ...(source?.upload === undefined ? {} : { [cdiAnnotations.podReady]: 'false' }),
  [`${cdiGroup}/storage.condition.running`]: 'false',
  [`${cdiGroup}/storage.condition.running.reason`]: 'Completed',
});

/** A restore creates the claim with its data, earlier or later: a new claim would be another disk. */
export const comesFilled = ({ annotations = {} }: Metadata): boolean => annotations[prePopulated] !== undefined;

/** A restore may have created its persistent volume, reserved for its claim by name. */
export const mayBeStatic = ({ annotations = {} }: Metadata): boolean => annotations[checkStatic] !== undefined;

/** Boolean values as parsed by Go. */
const isTrue = (text: string | undefined): boolean => ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text ?? '');

/** A claim that was prepared for a DataVolume of this name, by a restore or a user. */
export const mayAdopt = (metadata: Metadata, found: Marks): boolean =>
  found[populatedFor] === metadata.name ||
  found[prePopulated] === metadata.name ||
  comesFilled(metadata) ||
  isTrue(metadata.annotations?.[claimAdoption]);
