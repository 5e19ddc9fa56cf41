// Creates a DataVolume for claims that users created for an upload. Called when one with the label of `virtctl` changes, and by the tick for
// all others, since claims of others cause no events.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, apiVersionOf, refOf } from '#shared/api/object.ts';
import { findWriter } from '#shared/populate/clone/writer.ts';
import { execute } from '#shared/resources/execute.ts';
import { asksForUpload, planUploadClaim } from '#shared/resources/upload-claims/plan.ts';
import { recordNote } from '#shared/resources/write.ts';
import { AppError, isConflict, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const serve = async (deps: ReconcileDeps, claim: PersistentVolumeClaim): Promise<void> => {
  const { namespace, name } = claim.metadata;
  const dataVolume = await deps.kube.get(dataVolumeKind.type, { namespace, name });
  const writer = dataVolume === undefined ? await findWriter(deps.kube, { namespace, name }) : undefined;
  const { actions, obstacle } = planUploadClaim(claim, { dataVolume, writer });
  await execute(deps.kube, actions);
  if (obstacle !== undefined) await complain(deps, claim, obstacle);
};

const complain = (
  deps: ReconcileDeps,
  claim: PersistentVolumeClaim,
  { reason, message }: { readonly reason: string; readonly message: string },
): Promise<void> => recordNote(deps, refOf(claim), { type: 'Warning', reason, message, occurrence: message });

/** A permanent error of the API is reported on the claim; a transient one is thrown. */
const serveOrRecord = async (deps: ReconcileDeps, claim: PersistentVolumeClaim): Promise<void> => {
  try {
    await serve(deps, claim);
  } catch (error) {
    if (isConflict(error)) return;
    if (!(error instanceof AppError) || error.retryable) throw error;
    const { name } = claim.metadata;
    const message = `claim ${name} cannot be uploaded into: ${messageOf(error)}`;
    await complain(deps, claim, { reason: 'UploadRefused', message });
  }
};

/** A failure of one claim must not affect the others. */
const serveQuietly = async (deps: ReconcileDeps, claim: PersistentVolumeClaim): Promise<void> => {
  try {
    await serveOrRecord(deps, claim);
  } catch (error) {
    const { namespace = '', name } = claim.metadata;
    deps.log.warn('claim not made an upload target', { object: `${namespace}/${name}`, error: messageOf(error) });
  }
};

const isClaim = (object: KubeObject): object is PersistentVolumeClaim =>
  object.kind === persistentVolumeClaims.kind && object.apiVersion === apiVersionOf(persistentVolumeClaims);

/** An object of any kind was added or changed. Throws transient errors. */
export const serveUploadClaim = async (deps: ReconcileDeps, changed: KubeObject): Promise<Outcome> => {
  if (!isClaim(changed) || !asksForUpload(changed) || (await deps.cdi()) === 'use') return done;
  const claim = await deps.kube.get(persistentVolumeClaims, refOf(changed));
  if (claim !== undefined && asksForUpload(claim)) await serveOrRecord(deps, claim);
  return done;
};

/** An installed CDI handles them itself. Our own claims have an owner. */
export const serveUploadClaims = async (deps: ReconcileDeps): Promise<void> => {
  if ((await deps.cdi()) === 'use') return;
  const others = { labelSelector: `!${labels.ownerUid}` };
  for await (const claim of deps.kube.listAll(persistentVolumeClaims, others)) {
    if (asksForUpload(claim)) await serveQuietly(deps, claim);
  }
};
