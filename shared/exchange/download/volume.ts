// The volume of a target to download, and whether it can be read now. Only reads.
import { createHash } from 'node:crypto';
import { type PersistentVolumeClaim, type VolumeMode, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import { type ObjectRef, apiVersionOf, refOf } from '#shared/api/object.ts';
import { ownerOf } from '#shared/api/owner.ts';
import { findWriter } from '#shared/populate/clone/writer.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import type { ExchangeTarget } from '#shared/exchange/target.ts';
import { targetText } from '#shared/exchange/target-name.ts';
import { volumeModeOf } from '#shared/populate/population.ts';

export interface DownloadVolume {
  /** Owner of the Job that serves it. */
  readonly owner: ObjectRef & { readonly namespace: string };
  readonly claimName: string;
  readonly volumeMode: VolumeMode;
  /** Identifies its content, if it has no writer any more. */
  readonly identity: string | undefined;
}

const imageKind = /^VirtualMachineImage\./;

/** Golden volumes are not mounted by machines: their content is unchanged. */
const identityOf = (claim: PersistentVolumeClaim): string | undefined => {
  const populated = claim.metadata.annotations?.[annotations.populated];
  const isGolden = imageKind.test(ownerOf(claim)?.groupKind ?? '');
  if (!isGolden || populated === undefined) return undefined;
  return createHash('sha256')
    .update(`${claim.metadata.uid ?? ''}/${populated}`)
    .digest('hex');
};

/** Throws a Problem: 409 if it has no consistent content now. */
export const findVolume = async (kube: KubeClient, target: ExchangeTarget): Promise<DownloadVolume> => {
  const { name, uid, claimName, isUsable, message: why } = target;
  const { namespace } = name;
  if (!isUsable) throw new Problem(409, 'NotReady', `${targetText(name)} cannot be downloaded yet: ${why}`);
  const claim =
    claimName === undefined ? undefined : await kube.get(persistentVolumeClaims, { namespace, name: claimName });
  if (claim === undefined) throw new Problem(409, 'VolumeLost', `the volume of ${targetText(name)} does not exist`);
  if (claim.metadata.annotations?.[cdiAnnotations.contentType] === 'archive')
    throw new Problem(
      409,
      'UnsupportedFormat',
      `${targetText(name)} contains files, not a disk: mount its claim to read them`,
    );
  const identity = identityOf(claim);
  const writer = identity === undefined ? await findWriter(kube, { namespace, name: claim.metadata.name }) : undefined;
  if (writer !== undefined) {
    const message = `${targetText(name)} is in use by pod ${writer.metadata.name}, which may write to it: stop it, or download a copy of a snapshot`;
    throw new Problem(409, 'SourceInUse', message);
  }
  const { type } = harvesterImageKind;
  const owner =
    name.plural === 'virtualmachineimages'
      ? { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name: name.name, uid }
      : { ...refOf(claim), namespace };
  return { owner, claimName: claim.metadata.name, volumeMode: volumeModeOf(claim), identity };
};
