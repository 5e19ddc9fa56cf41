// Loss of content that was usable: how it is restored, and whether the new content is the same. Pure.
import type { DesiredCondition } from '#shared/api/conditions.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import { failedState } from '#shared/populate/state.ts';
import { type Source, isSent } from '#shared/populate/source.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

interface Losable extends Filled {
  readonly checksum?: Checksum | undefined;
}

/**
 * `what` is gone or lost its data: `the golden volume x`. A checksum in spec already determines the content; otherwise the digests are kept for
 * comparison after a retry.
 */
export const lostState = (lost: Losable, what: string, source: Source | undefined): ImageState => {
  const { state, checksum } = lost;
  const wasFilled = state.phase === 'Available' || state.phase === 'Snapshotting';
  const lostDigests = wasFilled && checksum === undefined ? { ...state.digests } : state.lostDigests;
  const message = `${what} is gone or lost its data; ${againWith(source, checksum)}`;
  return { ...failedState(state, 'VolumeLost', message), lostDigests };
};

const retry = 'set a new value of the annotation bullion.dev/retry';

const againWith = (source: Source | undefined, checksum: Checksum | undefined): string => {
  if (isSent(source)) return `${retry}, then upload the file again`;
  const careful = checksum === undefined ? ', and the new content is compared with the lost content' : '';
  return `${retry} to make it again from its source${careful}`;
};

const byAlgorithm = ['sha512', 'sha256', 'sha1', 'md5'];

/** For content that was made again after a loss; otherwise `undefined`. */
export const contentCondition = ({ phase, lostDigests, digests = {} }: ImageState): DesiredCondition | undefined => {
  if (lostDigests === undefined) return undefined;
  const type = 'ContentChanged';
  const former = Object.entries(lostDigests).map(([name, hex]) => `${name} ${hex}`);
  const held = former.length === 0 ? 'something without a known digest' : former.join(', ');
  if (phase !== 'Available')
    return { type, status: 'Unknown', reason: 'VolumeLost', message: `until it was lost it held ${held}` };
  const algorithm = byAlgorithm.find((name) => lostDigests[name] !== undefined && digests[name] !== undefined);
  if (algorithm === undefined) {
    const message = `it was lost and made again, and its content cannot be compared: it held ${held}, and no digest of that algorithm is known now; set a checksum in spec to be certain`;
    return { type, status: 'Unknown', reason: 'ContentUnknown', message };
  }
  const [before, now] = [lostDigests[algorithm], digests[algorithm]];
  return before === now
    ? { type, status: 'False', reason: 'ContentUnchanged', message: `made again after a loss: ${algorithm} ${now}` }
    : { type, status: 'True', reason: 'ContentChanged', message: differs(algorithm, before, now) };
};

const differs = (algorithm: string, before = '', now = ''): string =>
  `it was lost and made again, and its source had changed: ${algorithm} was ${before} and is ${now}; clones made before the loss hold the former content`;

/** A warning if the content differs from the lost content, or cannot be compared. */
export const contentWarning = (
  state: ImageState,
): { readonly reason: string; readonly message: string } | undefined => {
  const condition = state.phase === 'Available' ? contentCondition(state) : undefined;
  const { reason = '', message = '' } = condition ?? {};
  return condition === undefined || condition.status === 'False' ? undefined : { reason, message };
};
