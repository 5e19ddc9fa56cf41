// When sources are polled, how often, and the effect of a late or repeated result.
import { describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { refOf } from '#shared/api/object.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import { pollIfDue, recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { tick } from '#shared/resources/sweep.ts';
import { digestOf, found, minute, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron, all, conditionsOf, cronNow, eventsNow, importVersion } = world;

describe('polls', () => {
  it('query each distinct source once a tick, however many crons follow it', async () => {
    const registry = (url: string) => ({ template: { spec: { source: { registry: { url } } } } });
    for (let index = 0; index < 30; index += 1) {
      aCron(
        { ...registry(`docker://quay.io/a/b:${index % 5}`), managedDataSource: `d${index}` },
        { name: `c${index}`, namespace: `ns${index % 3}` },
      );
    }
    await tick(world.deps);
    expect(world.asked.length).toBe(5);
    expect(world.kube.all(dataVolumes).length).toBe(30);
    world.time += 5 * minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(5);
  });

  it('query once although crons have different states, and report to each what is new to it', async () => {
    aCron({}, { name: 'old' });
    await tick(world.deps);
    aCron({ managedDataSource: 'other' }, { name: 'new' });
    world.answer = () => found('b');
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(2);
    expect(world.asked[1]?.known).toEqual({});
    expect(['old', 'new'].map((name) => cronNow(name).status?.lastPoll?.outcome)).toEqual(['Changed', 'Changed']);
  });

  it.each(['of a host that asked to be left alone', 'of any host'])(
    'begin with the cron whose last answer is oldest: %s',
    async (which) => {
      if (which !== 'of any host') {
        aCron({ managedDataSource: 'z' }, { name: 'z' });
        world.answer = () => ({ is: 'failed', reason: 'RateLimited', message: '429', retryAfterSeconds: 60 });
        await tick(world.deps);
      }
      const minutes = { b: 30, d: 10, a: 40, c: 20, e: undefined };
      for (const [name, at] of Object.entries(minutes)) {
        aCron(
          {
            template: { spec: { source: { registry: { url: `docker://quay.io/a/${name}` } } } },
            managedDataSource: name,
          },
          { name },
        );
        if (at === undefined) continue;
        const time = new Date(world.time + at * minute).toISOString();
        world.kube.edit(dataImportCronKind.type, { namespace, name }, (cron) => {
          Object.assign(cron, {
            status: { lastPoll: { time, outcome: 'Same', message: 'x', failures: 0, answered: time } },
          });
          cron.metadata.annotations = { ...cron.metadata.annotations, [cdiAnnotations.lastCronTime]: time };
        });
      }
      world.time += 13 * 60 * minute;
      world.answer = () => found('a');
      world.asked.length = 0;
      await tick(world.deps);
      const order = world.asked.map(({ source }) => (source.type === 'registry' ? source.image.repository : ''));
      expect(order.filter((name) => /^a\/[a-e]$/.test(name))).toEqual(['a/e', 'a/d', 'a/c', 'a/b', 'a/a']);
    },
  );

  it('are not shared between crons with Secrets of their own', async () => {
    aCron({}, { name: 'one', namespace: 'ns1' });
    aCron({}, { name: 'two', namespace: 'ns2' });
    await tick(world.deps);
    expect(world.asked.map((request) => request.namespace).sort()).toEqual(['ns1', 'ns2']);
  });

  it('remember their result, and forget it with the digest', async () => {
    aCron();
    await tick(world.deps);
    world.answer = () => ({ is: 'same', message: 'still' });
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(world.asked.at(-1)?.known).toMatchObject({ sourceDigest: digestOf('a') });
    expect(cronNow().status?.lastPoll).toMatchObject({
      outcome: 'Same',
      message: 'still',
      sourceDigest: digestOf('a'),
    });
    await world.kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [cdiAnnotations.desiredDigest]: '' } } },
    );
    world.answer = () => found('a');
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(world.asked.at(-1)?.known).toEqual({});
    expect(cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(digestOf('a'));
  });

  it('keep the note about tags that were passed over in the status, whether or not the version is new', async () => {
    const note = '; passed over: 2022.04.26 (dates, which are not compared with versions)';
    aCron();
    world.answer = () => ({ ...found('a'), message: `fedora:9.11 has digest a${note}` });
    await tick(world.deps);
    expect(cronNow().status?.lastPoll).toMatchObject({
      outcome: 'Changed',
      message: `fedora:9.11 has digest a${note}`,
    });
    await importVersion('a');
    world.answer = () => ({ is: 'same', message: `fedora:9.11 still has digest a${note}` });
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(cronNow().status?.lastPoll?.message).toBe(`fedora:9.11 still has digest a${note}`);
  });

  it('catch up with one poll, however many were missed', async () => {
    aCron();
    await tick(world.deps);
    world.time += 10 * 24 * 60 * minute;
    await tick(world.deps);
    await tick(world.deps);
    expect(world.asked.length).toBe(2);
  });

  it('whose result arrives late revert nothing: the source is polled again when it contradicts the status', async () => {
    aCron();
    const askedAt = world.time;
    await importVersion('a');
    await importVersion('b');
    const digestNow = () => cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest];
    await recordObservation(world.deps, refOf(cronNow()), found('a'), askedAt);
    expect(digestNow()).toBe(digestOf('b'));
    world.answer = () => found('b');
    const before = world.asked.length;
    await tick(world.deps);
    expect([world.asked.length, digestNow()]).toEqual([before + 1, digestOf('b')]);
  });

  it('of a file, which has a tag instead of a digest, are compared too', async () => {
    aCron();
    const tagged = (which: string): Observation => ({
      is: 'found',
      digest: digestOf(which),
      message: which,
      memory: { etag: `"${which}"` },
    });
    const askedAt = world.time;
    world.time += minute;
    await recordObservation(world.deps, refOf(cronNow()), tagged('a'), world.time - 1);
    await recordObservation(world.deps, refOf(cronNow()), tagged('b'), askedAt);
    const before = world.asked.length;
    await tick(world.deps);
    expect(world.asked.length).toBe(before + 1);
  });

  it('that failed, and arrive minutes later, suspend the source for as long as it asked', async () => {
    aCron();
    const askedAt = world.time;
    world.time += 3 * minute;
    const refusal = { is: 'failed', reason: 'TooManyRequests', message: '429', retryAfterSeconds: 1800 } as const;
    await recordObservation(world.deps, refOf(cronNow()), refusal, askedAt);
    const before = world.asked.length;
    world.time += 29 * minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(before);
    world.time += 2 * minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(before + 1);
  });

  it('that arrive minutes later are repeated: a user may have requested a poll since', async () => {
    aCron();
    const askedAt = world.time;
    world.time += 3 * minute;
    await recordObservation(world.deps, refOf(cronNow()), found('a'), askedAt);
    world.answer = () => found('b');
    world.time += minute;
    await tick(world.deps);
    expect(cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(digestOf('b'));
  });

  it('that arrive twice keep what a user wrote in between', async () => {
    aCron();
    const askedAt = world.time;
    await importVersion('a');
    const annotated = { metadata: { annotations: { [cdiAnnotations.desiredDigest]: digestOf('f') } } };
    await world.kube.mergePatch(dataImportCronKind.type, { namespace, name: 'cron' }, annotated);
    await recordObservation(world.deps, refOf(cronNow()), found('a'), askedAt);
    await tick(world.deps);
    expect(cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(digestOf('f'));
  });

  it('are due at once when a user writes a past time', async () => {
    aCron();
    await importVersion('a');
    await world.kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [cdiAnnotations.nextCronTime]: '2026-01-01T00:00:00Z' } } },
    );
    world.answer = () => found('b');
    world.time += minute;
    await pollIfDue(world.deps, cronNow());
    expect(all().imports).toContain(nameOf('b'));
  });

  it('that fail set a condition with the message of the source, are retried sooner, and do no harm', async () => {
    aCron();
    await importVersion('a');
    world.answer = () => ({ is: 'failed', reason: 'Unauthorized', message: 'quay.io answered 401' });
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(conditionsOf()).toMatchObject({
      Degraded: 'True/PollFailed',
      UpToDate: 'True/UpToDate',
      Ready: 'True/Ready',
    });
    expect(cronNow().status?.conditions?.at(-1)?.message).toContain('quay.io answered 401');
    expect(eventsNow().filter((reason) => reason === 'PollFailed').length).toBe(1);
    const first = world.asked.length;
    world.time += minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(first + 1);
    world.time += minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(first + 1);
    expect(eventsNow().filter((reason) => reason === 'PollFailed').length).toBe(1);
  });

  it('are counted on one Event, with the result of the newest', async () => {
    const polls = () => world.kube.all(kubeEvents).filter(({ reason }) => reason === 'SourcePolled');
    aCron();
    await importVersion('a');
    expect(polls()).toMatchObject([{ type: 'Normal', count: 1, message: 'changed: it is a' }]);
    world.answer = () => ({ is: 'same', message: 'still a' });
    for (let round = 2; round <= 3; round += 1) {
      world.time += 13 * 60 * minute;
      await tick(world.deps);
      expect(polls()).toMatchObject([
        { type: 'Normal', count: round, message: 'unchanged: still a', firstTimestamp: '2026-03-01T00:02:00Z' },
      ]);
    }
    world.answer = () => ({ is: 'failed', reason: 'Unauthorized', message: 'quay.io answered 401' });
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(polls()).toMatchObject([{ type: 'Warning', count: 4, message: 'failed: quay.io answered 401' }]);
    // A poll writes digest and times, its remembered state, and the Event; one that is not due writes nothing.
    world.answer = () => ({ is: 'same', message: 'still a' });
    world.time += 13 * 60 * minute;
    world.kube.calls.length = 0;
    await tick(world.deps);
    const writes = world.kube.calls.filter(({ verb }) => !['get', 'list'].includes(verb));
    expect(writes.length).toBeLessThanOrEqual(4);
    world.kube.calls.length = 0;
    await tick(world.deps);
    expect(world.kube.calls.filter(({ verb }) => verb !== 'list')).toEqual([]);
  });

  it('wait as long as the source asks', async () => {
    aCron();
    world.answer = () => ({ is: 'failed', reason: 'RateLimited', message: 'enough', retryAfterSeconds: 7200 });
    await tick(world.deps);
    expect(cronNow().status?.nextExecutionTimestamp).toBe('2026-03-01T02:00:00Z');
    world.time += 119 * minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(1);
    world.time += minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(2);
  });
});
