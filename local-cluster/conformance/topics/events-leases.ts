// Events and Leases.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, changed } from '#local-cluster/conformance/suite/json.ts';
import {
  type Body,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  grouped,
  namesOf,
} from '#local-cluster/conformance/topics/objects.ts';

const involved = (ns: string, name: string): Body => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: ns,
  name,
  uid: '11111111-1111-4111-8111-111111111111',
});

const event = (ns: string, name: string, more: Body = {}): Body => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name },
  involvedObject: involved(ns, 'thing'),
  reason: 'Imported',
  message: 'All bytes are there.',
  type: 'Normal',
  firstTimestamp: '2026-01-01T00:00:00Z',
  lastTimestamp: '2026-01-01T00:00:00Z',
  count: 1,
  source: { component: 'tester' },
  ...more,
});

const lease = (spec: Body, metadata: Body = {}): Body => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'a', ...metadata },
  spec,
});

const leases = (t: CaseContext): Promise<string> =>
  t.namespace().then((ns) => grouped('coordination.k8s.io/v1', ns, 'leases'));

export const eventsLeases: Topic = {
  topic: 'events-leases',
  cases: {
    'an Event is stored unchanged': async (t) => {
      const ns = await t.namespace();
      t.same('event', await create(t, core(ns, 'events'), event(ns, 'a')));
    },
    'both groups return the same Event': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'events'), event(ns, 'a'));
      t.same('new group', await get(t, grouped('events.k8s.io/v1', ns, 'events', 'a')));
      const body = {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name: 'b' },
        eventTime: '2026-01-01T00:00:00.000001Z',
        reportingController: 'bullion.dev/tester',
        reportingInstance: 'tester-1',
        action: 'Import',
        reason: 'Imported',
        regarding: involved(ns, 'thing'),
        note: 'All bytes are there.',
        type: 'Normal',
      };
      await create(t, grouped('events.k8s.io/v1', ns, 'events'), body);
      t.same('old group', await get(t, core(ns, 'events', 'b')));
    },
    'Events can be selected by the object they are about': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'events'), event(ns, 'a'));
      await create(
        t,
        core(ns, 'events'),
        event(ns, 'b', { involvedObject: involved(ns, 'other'), type: 'Warning', reason: 'Failed' }),
      );
      const find = async (selector: string) =>
        namesOf(await get(t, `${core(ns, 'events')}?fieldSelector=${encodeURIComponent(selector)}`)).join('');
      strictEqual(await find('involvedObject.name=thing'), 'a');
      strictEqual(await find('involvedObject.kind=ConfigMap,involvedObject.name=other'), 'b');
      strictEqual(await find(`involvedObject.namespace=${ns}`), 'ab');
      strictEqual(await find('involvedObject.uid=11111111-1111-4111-8111-111111111111'), 'ab');
      strictEqual(await find('type=Warning'), 'b');
      strictEqual(await find('reason!=Failed'), 'a');
      strictEqual(await find('source=tester'), 'ab');
    },
    'an Event must be about an object in its namespace': async (t) => {
      const ns = await t.namespace();
      const body = event(ns, 'a', { involvedObject: involved('default', 'thing') });
      t.same('answer', failureOf(expectStatus(await t.call('POST', core(ns, 'events'), { body }), 422)));
    },
    'an Event of the new group has its own rules': async (t) => {
      const ns = await t.namespace();
      const body = {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name: 'b' },
        eventTime: '2026-01-01T00:00:00.000001Z',
        regarding: involved(ns, 'thing'),
        type: 'Odd',
      };
      t.same(
        'answer',
        failureOf(expectStatus(await t.call('POST', grouped('events.k8s.io/v1', ns, 'events'), { body }), 422)),
      );
    },
    'a Lease keeps microseconds': async (t) => {
      const spec = {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        acquireTime: '2026-01-01T00:00:00.123456Z',
        renewTime: '2026-01-01T00:00:01.000000Z',
        leaseTransitions: 0,
      };
      const created = await create(t, await leases(t), lease(spec));
      strictEqual(at(created, 'spec.acquireTime'), '2026-01-01T00:00:00.123456Z');
      t.same('lease', created);
    },
    'one of two renewals from the same version wins': async (t) => {
      const path = await leases(t);
      const created = await create(t, path, lease({ holderIdentity: 'nobody' }));
      const renew = (holderIdentity: string) =>
        t.call('PUT', `${path}/a`, { body: changed(created, (copy) => (copy['spec'] = { holderIdentity })) });
      const answers = await Promise.all([renew('one'), renew('two')]);
      deepStrictEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 409],
      );
    },
    'an invalid Lease is rejected': async (t) => {
      const path = await leases(t);
      t.same(
        'answer',
        failureOf(
          expectStatus(
            await t.call('POST', path, { body: lease({ leaseDurationSeconds: 0, leaseTransitions: -1 }) }),
            422,
          ),
        ),
      );
    },
  },
};
