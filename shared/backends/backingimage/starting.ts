// An image without a backing image: creates it together with the class for volumes, or reports the obstacle. Pure.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { type Action, create, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import {
  type BackingImageSource,
  buildBackingImage,
  buildStorageClass,
  copiesIn,
  parametersOf,
  secretProblem,
} from './manifests.ts';
import { longhornMissing } from '#shared/backends/backingimage/observed.ts';
import { cloneLabels } from '#shared/backends/backingimage/origin.ts';
import type { ObservedBackingImage } from '#shared/backends/backingimage/observed.ts';
import { markExported } from '#shared/backends/source-claim.ts';
import { failedState, restingState, retryHint, waitingState } from '#shared/populate/state.ts';
import { isSent } from '#shared/populate/source.ts';
import type { Image } from '#shared/backends/backend.ts';

export const planStart = (image: Image, observed: ObservedBackingImage, context: PlanContext): Plan => {
  if (!observed.isInstalled) return wait(image, 'BackendUnavailable', longhornMissing, context);
  const { origin } = observed;
  if (origin === undefined) return wait(image, 'SourceNotReady', 'waiting for the inspection of the source', context);
  switch (origin.is) {
    case 'waiting':
      return wait(image, origin.reason, origin.message, context);
    case 'busy':
      return { actions: [], state: restingState(image, origin) };
    case 'refused':
      return fail(image, origin.reason, origin.message);
    case 'ready':
      return make(image, observed, origin.origin, context);
  }
};

const wait = (image: Image, reason: string, message: string, context: PlanContext): Plan => ({
  actions: [],
  state: waitingState(image, image.state, { phase: 'Pending', reason, message }, context),
});

const fail = (image: Image, reason: string, message: string): Plan => ({
  actions: [],
  state: failedState(image.state, reason, `${message}; ${retryHint}`),
});

const startStep = { phase: 'Pending', reason: 'Starting', message: 'Longhorn is starting the transfer' } as const;
const uploadStep = {
  phase: 'Pending',
  reason: 'WaitingForUpload',
  message: 'waiting for a client to send the file',
} as const;

const make = (image: Image, observed: ObservedBackingImage, origin: BackingImageSource, context: PlanContext): Plan => {
  const classParameters = parametersOf(image, observed.template);
  if (copiesIn(classParameters) === undefined) {
    return fail(image, 'InvalidSpec', 'spec.storageClassParameters.numberOfReplicas is not a number above 0');
  }
  const problem = secretProblem(image, classParameters);
  if (problem !== undefined) return fail(image, 'NotAuthorized', problem);
  // One more than have failed: a backing image that was deleted by someone else before its end does not count.
  const attempt = image.state.attemptsFailed + 1;
  const built = buildBackingImage(image, origin, { attempt, classParameters });
  const labels = { ...built.metadata.labels, ...cloneLabels(image) };
  const backingImage = { ...built, metadata: { ...built.metadata, labels } };
  const storageClass = observed.storageClass ?? buildStorageClass(image, built.metadata.name, classParameters);
  const actions: readonly Action[] = [
    ...markExported(observed.exported, image),
    create(backingImages, backingImage),
    ...(observed.storageClass === undefined ? [create(storageClasses, storageClass)] : []),
  ];
  const next = {
    ...image.state,
    attempts: Math.max(image.state.attempts, attempt),
    progress: 0,
    nextAttemptTime: undefined,
    storageClassName: storageClass.metadata.name,
    children: {
      ...image.state.children,
      backingImage: backingImage.metadata.name,
      storageClass: storageClass.metadata.name,
    },
  };
  const step = isSent(image.source) ? uploadStep : startStep;
  return { actions, state: waitingState(image, next, step, context) };
};
