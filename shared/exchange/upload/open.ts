// Finds the receiver of a target's bytes. Every kind of upload uses this.
import { setTimeout as sleep } from 'node:timers/promises';
import { annotations } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type ExchangeTarget, findTarget } from '#shared/exchange/target.ts';
import { targetText } from '#shared/exchange/target-name.ts';
import { lookAtUpload, type UploadState } from '#shared/exchange/upload/session.ts';
import { type Worker, type WorkerDeps, findWorker } from '#shared/exchange/worker.ts';
import { uploadPort } from '#shared/populate/sources/upload.ts';

export interface UploadDeps extends WorkerDeps {
  /** Milliseconds to wait for a pod. */
  readonly waitMs: number;
}

export interface OpenUpload {
  readonly target: ExchangeTarget;
  readonly worker: Worker;
  readonly state: UploadState;
}

/** Why the target does not accept bytes now, and what to do; `undefined`: it does. */
export const closedBecause = ({
  name,
  stage,
  message,
  volumeName = name.name,
}: ExchangeTarget): Problem | undefined => {
  const text = targetText(name);
  switch (stage) {
    case 'no-upload':
      return new Problem(409, 'NotAnUploadTarget', `${text} is not made from an upload: its source must be upload`);
    case 'theirs':
      return new Problem(
        409,
        'NotAnUploadTarget',
        `DataVolume ${volumeName} is filled by the installed CDI, which receives the file at its own upload proxy: ` +
          `virtctl image-upload dv ${volumeName} -n ${name.namespace} --no-create --image-path <file>`,
      );
    case 'done':
      return new Problem(409, 'AlreadyUploaded', `${text} has been uploaded already: create a new one`);
    case 'failed':
      return new Problem(409, 'Failed', `${text} has failed: ${message}; the next upload restarts it`);
    case 'unoffered':
    case 'open':
      return undefined;
  }
};

/** Throws a Problem if the target does not accept bytes now, with the reason. */
export const requireOpen = (target: ExchangeTarget): void => {
  const problem = closedBecause(target);
  if (problem !== undefined) throw problem;
};

/** Starts the Job of a paused upload again, once for each pause. */
const createResumption = (kube: KubeClient) => {
  let resumed: string | undefined;
  return async ({ pause }: ExchangeTarget): Promise<void> => {
    if (pause === undefined || pause.deadline === resumed) return;
    const metadata = { annotations: { [annotations.resumedPause]: pause.deadline } };
    await kube.mergePatch(pause.type, pause.key, { metadata });
    resumed = pause.deadline;
  };
};

const pollMs = 150;

/** The target with a ready receiver. Throws a Problem: 503 on timeout. */
export const untilReceived = async (
  deps: UploadDeps,
  target: ExchangeTarget,
  signal: AbortSignal,
): Promise<ExchangeTarget> => {
  const deadline = deps.now() + deps.waitMs;
  for (let observed = target; ; observed = await findTarget(deps.kube, target.name)) {
    requireOpen(observed);
    if (observed.receiver !== undefined || observed.backingImage !== undefined) return observed;
    if (deps.now() >= deadline) {
      const message = `not ready to receive the file yet: ${observed.message}; try again`;
      throw new Problem(503, 'NotReady', message, { headers: { 'retry-after': '5' } });
    }
    await sleep(pollMs, undefined, { signal });
  }
};

const wholeFilesOnly = ({ name }: ExchangeTarget): Problem =>
  new Problem(
    409,
    'NotResumable',
    `${targetText(name)} is stored in Longhorn, which receives whole files: POST the file to its upload action`,
  );

/** Throws a Problem if the target is stored in Longhorn. */
export const openUpload = async (deps: UploadDeps, asked: ExchangeTarget, signal: AbortSignal): Promise<OpenUpload> => {
  const target = await untilReceived(deps, asked, signal);
  const { receiver } = target;
  if (receiver === undefined) throw wholeFilesOnly(target);
  const resume = createResumption(deps.kube);
  await resume(target);
  // Its Job may have ended a moment ago, and the result or the pause is recorded only now.
  const check = async (): Promise<void> => {
    const observed = await findTarget(deps.kube, target.name);
    requireOpen(observed);
    await resume(observed);
  };
  const worker = await findWorker(deps, {
    namespace: target.name.namespace,
    uid: receiver,
    role: 'import',
    port: uploadPort,
    waitMs: deps.waitMs,
    signal,
    check,
  });
  return { target, worker, state: await lookAtUpload(worker, signal, { check }) };
};
