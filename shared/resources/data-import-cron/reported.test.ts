// How the versions of a cron are reported: by events to other systems, by kubectl to users, by metrics to monitoring.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery } from '#events/sender.ts';
import type { CloudEvent } from '#events/event.ts';
import type { Send } from '#events/sender.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { storageClasses } from '#shared/api/foreign/core.ts';
import { refOf } from '#shared/api/object.ts';
import { createAnnouncer } from '#shared/resources/announcer.ts';
import { cronMetricsOf } from '#shared/resources/data-import-cron/metrics.ts';
import { pollIfDue, recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { tick } from '#shared/resources/sweep.ts';
import { digestOf, found, minute, nameOf, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron, conditionsOf, cronNow, finishImport, importVersion, poll } = world;

describe('events for other systems', () => {
  const events: CloudEvent[] = [];
  let isTaking: boolean;
  beforeEach(() => {
    events.length = 0;
    isTaking = true;
    const send: Send = (event) => {
      if (isTaking) events.push(event);
      return Promise.resolve({ isDelivered: isTaking } as Delivery);
    };
    world.deps = { ...world.deps, send, announce: createAnnouncer(send) };
  });
  const typesNow = () => events.map(({ type }) => type.replace('dev.bullion.version.', ''));

  it('report each version that came into use, was superseded, failed, or was removed', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    await poll('c');
    await finishImport(nameOf('c'), 'Failed');
    await poll('d');
    world.kube.collectGarbage();
    await finishImport(nameOf('d'));
    expect(typesNow()).toEqual(['imported', 'superseded', 'failed', 'superseded', 'collected', 'imported']);
    expect(events[0]).toMatchObject({
      subject: '/apis/cdi.kubevirt.io/v1beta1/namespaces/golden-images/dataimportcrons/cron',
      data: { cron: { name: 'cron' }, version: nameOf('a'), digest: digestOf('a') },
    });
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(cronNow().status?.counts).toEqual({ polled: 4, imported: 2, superseded: 2, failed: 1, collected: 1 });
  });

  it('report every poll, including the first one, and a repeated answer changes nothing', async () => {
    const cron = aCron();
    await pollIfDue(world.deps, cron);
    const polled = events.find(({ type }) => type === 'dev.bullion.source.polled');
    expect(polled).toMatchObject({
      data: { cron: { name: 'cron' }, observation: { is: 'found', digest: digestOf('a') } },
    });
    const before = cronNow();
    world.time += 10;
    await recordObservation(world.deps, refOf(cron), found('a'), Date.parse(polled?.time ?? ''));
    expect({ ...cronNow(), metadata: undefined }).toEqual({ ...before, metadata: undefined });
  });

  it('are sent later when they could not be delivered', async () => {
    aCron();
    isTaking = false;
    await importVersion('a');
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
    isTaking = true;
    await tick(world.deps);
    await tick(world.deps);
    expect(typesNow().filter((type) => type === 'imported')).toEqual(['imported']);
  });
});

describe('the columns of `kubectl get dic`', () => {
  const valueAt = (jsonPath: string): unknown =>
    jsonPath
      .slice(1)
      .split('.')
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], cronNow());

  it('show version, age, last and next poll, and the result of a poll', async () => {
    aCron();
    await importVersion('a');
    const shown = Object.fromEntries(
      (dataImportCronKind.columns ?? [])
        .filter(({ jsonPath }) => !jsonPath.includes('['))
        .map(({ name, jsonPath }) => [name, valueAt(jsonPath)]),
    );
    const today = expect.stringMatching(/^2026-03-01T/) as string;
    expect(shown).toMatchObject({
      Version: nameOf('a'),
      Format: 'pvc',
      Imported: today,
      LastPoll: today,
      NextPoll: today,
      Decision: 'Changed',
      Age: expect.any(String) as string,
    });
  });
});

describe('metrics of a cron', () => {
  const outdated = () => {
    const [metric] = cronMetricsOf(cronNow());
    return [metric?.labels['pending'], metric?.value];
  };

  it('report what is outdated, what only waits for a storage class, and nothing while an import runs', async () => {
    world.kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
      metadata.annotations = {};
    });
    aCron();
    await poll('a');
    expect(outdated()).toEqual(['true', 1]);
    world.kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
      metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    });
    await finishImport(nameOf('a'));
    expect(outdated()).toEqual(['false', 0]);
    await poll('b');
    await finishImport(nameOf('b'), 'ImportScheduled');
    expect(outdated()).toEqual(['false', 0]);
    await finishImport(nameOf('b'), 'ImportInProgress');
    expect(outdated()).toEqual(['false', 0]);
    await finishImport(nameOf('b'), 'Failed');
    expect(outdated()).toEqual(['false', 1]);
  });

  it('report failing polls, and the time of the last answer', async () => {
    aCron();
    await poll('a');
    const heard = Date.parse(cronNow().status?.lastPoll?.time ?? '') / 1000;
    const value = (name: string) => cronMetricsOf(cronNow()).find((metric) => metric.name.endsWith(name))?.value;
    expect([value('last_poll_seconds'), value('poll_failures')]).toEqual([heard, 0]);
    world.time += minute;
    await recordObservation(world.deps, refOf(cronNow()), { is: 'failed', reason: 'x', message: 'no' });
    expect(value('poll_failures')).toBe(1);
  });
});
