import { describe, expect, it } from 'vitest';
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import type { Downloader } from '#shared/api/harvester/downloader.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { downloaderPlanner, downloaderReconciler, lifetimeMs } from '#shared/resources/downloader/index.ts';

const made = Date.parse('2026-11-28T07:00:00Z');
const downloader: Downloader = {
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImageDownloader',
  metadata: { name: 'jammy', namespace: 'ns', uid: 'u', creationTimestamp: new Date(made).toISOString() },
  spec: { imageName: 'jammy' },
};
const image = (phase: string): HarvesterImage => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  metadata: { name: 'jammy', namespace: 'ns' },
  spec: { displayName: 'jammy', sourceType: 'upload' },
  status: { phase },
});
const planAt = (observed: HarvesterImage | undefined, age = 0, transferUrl: string | undefined = 'http://t.example/') =>
  downloaderPlanner.plan(downloaderReconciler.read(downloader), observed, {
    now: made + age,
    settings: { ...defaultSettings, transferUrl },
  });

describe('a Downloader', () => {
  it.each([
    ['an image that is not there', undefined, 'Progressing', 'ImageNotFound'],
    ['an image that is being imported', image('Downloading'), 'Progressing', 'SourceNotReady'],
    ['an image that is imported', image('Imported'), 'Ready', 'Ready'],
  ])('of %s', (_what, observed, phase, reason) => {
    const { state, actions } = planAt(observed);
    expect({ phase: state.phase, reason: state.reason, actions }).toEqual({ phase, reason, actions: [] });
    const status = downloaderReconciler.toStatus(downloader, downloaderReconciler.read(downloader), state, 'now');
    expect(status).toMatchObject({ status: phase, conditions: [{ type: 'Ready', reason }, { type: 'Reconciling' }] });
  });

  it('reports the address', () => {
    const url = 'http://t.example/v1/harvester/harvesterhci.io.virtualmachineimages/ns/jammy/download';
    expect(planAt(image('Imported')).state).toMatchObject({ downloadUrl: url });
  });

  it('is deleted after a day, whatever the state of its image', () => {
    expect(planAt(image('Imported'), lifetimeMs - 1).actions).toEqual([]);
    expect(planAt(undefined, lifetimeMs).actions).toMatchObject([{ do: 'delete', key: { name: 'jammy' }, uid: 'u' }]);
  });
});
