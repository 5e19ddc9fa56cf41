// What a DataVolume says of its claim and of names, one rule one line.
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type RequestRule, type SpecRule, faultIf } from '#shared/resources/rule.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

type Check = SpecRule<DataVolume>['check'];

/** `pvc` is taken as it is, so it says one mode; with `storage` the class may say which. */
const oneAccessMode: Check = ({ spec: { pvc } }) =>
  faultIf(
    pvc !== undefined && pvc.accessModes?.length !== 1,
    'spec.pvc.accessModes',
    'must have exactly one mode, such as ReadWriteOnce; with spec.storage instead of spec.pvc it is found out',
  );

const referenceName: Check = ({ spec: { sourceRef } }) =>
  faultIf(sourceRef?.name === '', 'spec.sourceRef.name', 'is empty; write the name of a DataSource');

const sourceNames: Check = ({ spec: { source = {} } }) =>
  (['pvc', 'snapshot'] as const).flatMap((kind) =>
    (['namespace', 'name'] as const).flatMap((part) =>
      faultIf(source[kind]?.[part] === '', `spec.source.${kind}.${part}`, 'is empty; name what is to be cloned'),
    ),
  );

export const dataVolumeClaimRules: readonly SpecRule<DataVolume>[] = [
  { id: 'one-access-mode', check: oneAccessMode },
  { id: 'reference-name', check: referenceName },
  { id: 'source-names', check: sourceNames },
];

/** One that is on its way out is waited for. */
const claimIsFree: RequestRule<KubeObject, Volume>['check'] = async ({ object, subject: { claim }, kube }) => {
  const key = { namespace: object.metadata.namespace ?? 'default', name: claim.name };
  const found = await kube.get(persistentVolumeClaims, key);
  const isTaken =
    found !== undefined &&
    found.metadata.deletionTimestamp === undefined &&
    claim.adopts?.(found) !== true &&
    claim.fills?.(found) !== true;
  const message = `claim ${claim.name} exists and was not made for this DataVolume: choose another name, or annotate this one with cdi.kubevirt.io/allowClaimAdoption=true to take it as it is`;
  return faultIf(isTaken, 'metadata.name', message);
};

export const freeClaim: RequestRule<KubeObject, Volume> = {
  id: 'free-claim',
  on: 'CREATE',
  reason: 'Conflict',
  check: claimIsFree,
};
