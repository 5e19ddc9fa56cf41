// Which project reconciles the kinds of CDI, by the objects in the cluster.
import { describe, expect, it } from 'vitest';
import { cdis } from '#shared/api/foreign/boot-sources.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import { testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const minute = 60_000;
const cdi: KubeObject = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'CDI', metadata: { name: 'cdi' } };

describe('the kinds of CDI belong to', () => {
  it('Bullion when the cluster does not have them', async () => {
    const look = createCdiLook(createMemoryKube({ absent: [cdis.plural] }), 'auto');
    expect(await look()).toBe('serve');
  });

  it('Bullion when only their definitions are left, and CDI while it is installed', async () => {
    let time = testTime;
    const kube = createMemoryKube();
    const look = createCdiLook(kube, 'auto', () => time);
    expect(await look()).toBe('serve');
    kube.seed(cdis, cdi);
    time += minute;
    expect(await look()).toBe('use');
    await kube.delete(cdis, { name: 'cdi' });
    expect(await look()).toBe('use');
    time += minute;
    expect(await look()).toBe('serve');
  });

  it('whoever is configured, and otherwise are checked once a minute at most', async () => {
    let time = testTime;
    const kube = createMemoryKube();
    const look = createCdiLook(kube, 'auto', () => time);
    for (let second = 0; second < 60; second += 1) {
      await look();
      time += 1000;
    }
    expect(kube.calls).toHaveLength(1);
    expect(await createCdiLook(kube, 'use')()).toBe('use');
    expect(await createCdiLook(kube, 'serve')()).toBe('serve');
    expect(kube.calls).toHaveLength(1);
  });

  it('nobody while the API is down', async () => {
    const kube = createMemoryKube();
    const isDown = { ...kube, list: () => Promise.reject(new Error('down')) };
    await expect(createCdiLook(isDown, 'auto')()).rejects.toThrow('down');
  });
});
