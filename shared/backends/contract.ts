// The test suite that every backend must pass. Called by contract.test.ts for each served backend, so a new backend is tested automatically.
import { describe, expect, it } from 'vitest';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { Backend, Image } from './backend.ts';
import { imagePhases } from '#shared/populate/filled.ts';
import { execute } from '#shared/resources/execute.ts';
import { anImage } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { Plan } from '#shared/populate/actions.ts';

/** Passes until no more actions are planned, in an otherwise unchanged cluster. */
const maxPasses = 10;

export const describeBackend = (name: string, backend: Backend): void => {
  const begin = () => {
    const { kube, settings, now, look } = createTestReconciler();
    const context = { now: now(), settings };
    const pass = async (image: Image): Promise<Plan> => {
      const plan = backend.initialize(image, await backend.check(kube, image, look), context);
      await execute(kube, plan.actions);
      return plan;
    };
    /** Reconciles an image until it is stable. */
    const settle = async (image: Image): Promise<Image> => {
      let current = image;
      for (let index = 0; index < maxPasses; index += 1) {
        const plan = await pass(current);
        current = { ...current, state: plan.state };
        if (plan.actions.length === 0) return current;
      }
      throw new Error(`${name} still acts after ${maxPasses} passes on an unchanged cluster`);
    };
    const made = (): readonly KubeObject[] =>
      kube.all().filter(({ metadata }) => metadata.labels?.[labels.ownerUid] !== undefined);
    return { kube, context, pass, settle, made };
  };

  describe(`backend ${name}`, () => {
    it('becomes stable in an unchanged cluster', async () => {
      const { settle, made } = begin();
      await settle(anImage());
      expect(made().length).toBeGreaterThan(0);
    });

    it('creates the same children however often it is called', async () => {
      const { settle, made } = begin();
      const image = await settle(anImage());
      const names = made().map(({ kind, metadata }) => `${kind}/${metadata.name}`);
      await settle({ ...image, state: anImage().state });
      expect(made().map(({ kind, metadata }) => `${kind}/${metadata.name}`)).toEqual(names);
    });

    it('watches every child it creates, and finds its owner', async () => {
      const { settle, made } = begin();
      const { ref } = await settle(anImage());
      // Children of a child are deleted with it and are not watched.
      for (const child of made().filter(({ metadata }) => metadata.ownerReferences?.[0]?.kind !== 'Job')) {
        const watchedChild = backend.watchedChildren.find(({ type }) => type.kind === child.kind);
        expect(watchedChild?.verbs).toContain('create');
        expect(watchedChild?.ownerOf(child)).toMatchObject({ uid: ref.uid, name: ref.name, namespace: ref.namespace });
        expect(watchedChild?.matters(child, 'delete')).toBe(true);
      }
    });

    it('names children so that every tool can use them', async () => {
      const { settle, made } = begin();
      await settle(anImage());
      for (const { metadata } of made()) {
        expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/);
        for (const value of Object.values(metadata.labels ?? {})) expect(value.length).toBeLessThanOrEqual(63);
      }
    });

    it('finds no owner for objects of others', () => {
      const stranger: KubeObject = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'stranger' } };
      for (const watchedChild of backend.watchedChildren) expect(watchedChild.ownerOf(stranger)).toBeUndefined();
    });

    it('does nothing for a failed image until a retry', async () => {
      const { pass } = begin();
      const state = { phase: 'Failed', reason: 'ImageCorrupt', message: 'no' } as const;
      expect(await pass(anImage({ state }))).toMatchObject({ actions: [], state });
      expect((await pass(anImage({ state, retryToken: '1' }))).state.phase).not.toBe('Failed');
    });

    it('removes everything it created, and nothing else', async () => {
      const { kube, settle, made, context } = begin();
      const image = await settle(anImage());
      const others = kube.all().length - made().length;
      const deleting = { ...image, deleting: true };
      for (let index = 0; index < maxPasses && made().length > 0; index += 1) {
        const plan = backend.delete(deleting, await backend.check(kube, deleting), context);
        expect(plan.removed).toBe(false);
        await execute(kube, plan.actions);
        kube.collectGarbage();
      }
      expect(kube.all()).toHaveLength(others);
      const last = backend.delete(deleting, await backend.check(kube, deleting), context);
      expect(last).toMatchObject({ actions: [], removed: true });
    });

    it.each(imagePhases)('reports the state of an image in phase %s', async (phase) => {
      const { state } = await begin().pass(anImage({ state: { phase } }));
      expect(state.reason).toMatch(/^[A-Z][A-Za-z]+$/);
      expect(state.message).not.toBe('');
      expect(state.progress === 100).toBe(state.phase === 'Available');
    });

    it('declares its sources', () => {
      expect(backend.capabilities.sources.length).toBeGreaterThan(0);
    });
  });
};
