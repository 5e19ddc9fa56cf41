// Jobs that read the volume of an image do not prevent its restart, or its deletion, once that volume is lost.
import { describe, expect, it } from 'vitest';
import { type Job, jobs, pods } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { cdi } from '#shared/backends/cdi/index.ts';
import { csi } from '#shared/backends/csi/index.ts';
import type { Backend, Image } from '#shared/backends/backend.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { aHyperCloudImage, aPod, aSuccess, anImage, imageRef } from '#test/support/builders.ts';
import { createTestReconciler, execute } from '#test/support/reconcile.ts';

const lost = (backend: string): Image =>
  anImage({ backend, retryToken: 'again', state: { phase: 'Failed', reason: 'VolumeLost', message: 'gone' } });

/** A backup that has ended, whose Job stays for a day, and a download that waits for its volume. */
const begin = (image: Image) => {
  const { kube, settings: given, now } = createTestReconciler();
  const settings = { ...given, transferUrl: 'https://transfer.example' };
  kube.seed(hyperCloudImageKind.type, aHyperCloudImage({ metadata: { name: imageRef.name, uid: imageRef.uid } }));
  const source = { type: 'claim', claimName: image.childNames.volume, volumeMode: 'Block' } as const;
  for (const mode of ['backup', 'serve'] as const) {
    const job: Job = kube.seed(jobs, buildTransferJob({ mode, owner: image.ref, source, retries: 0 }, settings));
    const isDone = mode === 'backup';
    kube.seed(pods, aPod(job, mode, isDone ? 'Succeeded' : 'Pending', isDone ? { report: aSuccess() } : {}));
  }
  return { kube, context: { now: now(), settings } };
};

describe.each<[string, Backend<never>]>([
  ['csi', csi as unknown as Backend<never>],
  ['cdi', cdi as unknown as Backend<never>],
])('an image of %s whose volume is lost', (name, backend) => {
  it('is restarted after a backup and a download of it have been stopped', async () => {
    let image = lost(name);
    const { kube, context } = begin(image);
    const pass = async () => {
      const plan = backend.initialize(image, (await backend.check(kube, image)) as never, context);
      await execute(kube, plan.actions);
      kube.collectGarbage();
      image = { ...image, state: plan.state };
      return plan.state.reason;
    };
    expect(await pass()).toBe('Restarting');
    expect(kube.all(jobs)).toEqual([]);
    expect(await pass()).not.toBe('Restarting');
    expect(kube.all(jobs).map(({ metadata }) => metadata.name.split('-')[0])).not.toContain('backup');
    expect(image.state).toMatchObject({ phase: 'Pending', handledRetryToken: 'again' });
  });

  it('is removed together with them', async () => {
    const image = { ...lost(name), deleting: true };
    const { kube, context } = begin(image);
    const pass = async () => {
      const plan = backend.delete(image, (await backend.check(kube, image)) as never, context);
      await execute(kube, plan.actions);
      kube.collectGarbage();
      return plan.removed;
    };
    expect(await pass()).toBe(false);
    expect(await pass()).toBe(true);
    expect(kube.all(jobs)).toEqual([]);
  });
});
