// Roles against what functions do: nothing is called that is not granted, nothing is granted that is never called. The comparison needs the calls
// of a whole run of flow tests: `npm run test:roles` makes one, `.ci/run` takes its own.
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { type AccountCall, readCalls } from '#test/roles/calls.ts';
import { missing, unused } from '#test/roles/rights.ts';
import { type Right, rightsOf } from '#infra/generate/rights.ts';

const manifests = Object.values(manifestOutputs()).flatMap((text) =>
  parseAllDocuments(text).map((document) => document.toJS() as Manifest),
);
/** Those that say no access of their own drive images, all by the same driver. */
const drivers = eventFunctions.filter(({ access }) => access === undefined).map(({ name }) => name);

const right = (account: string, verb: string, resource: string, more: Partial<Right> = {}): Right => ({
  account,
  verb,
  group: '',
  resource,
  names: [],
  ...more,
});
const call = (account: string, verb: string, resource: string, more: Partial<AccountCall> = {}): AccountCall => ({
  account,
  verb,
  group: '',
  resource,
  namespace: '*',
  name: '',
  ...more,
});

describe('the comparison', () => {
  it('reads the roles of each account, by binding', () => {
    const rights = rightsOf(manifests);
    expect(rights).toContainEqual(
      right('transfer', 'get', 'secrets', { namespace: 'bullion-system', names: ['transfer-keys'] }),
    );
    expect(rights).toContainEqual(right('cron-tick', 'patch', 'events', { namespace: undefined }));
    expect(drivers).toEqual(['initialize', 'sidecar-sync', 'cron-tick']);
  });

  it('names a call that no right covers: another verb, another place, another name', () => {
    const rights = [
      right('a', 'get', 'pods'),
      right('a', 'get', 'secrets', { namespace: 'bullion-system', names: ['keys'] }),
    ];
    const own = { namespace: 'bullion-system' };
    expect(missing(rights, [call('a', 'get', 'pods'), call('a', 'get', 'secrets', { ...own, name: 'keys' })])).toEqual(
      [],
    );
    expect(missing(rights, [call('a', 'list', 'pods'), call('b', 'get', 'pods')])).toEqual([
      'a: list pods',
      'b: get pods',
    ]);
    expect(missing(rights, [call('a', 'get', 'secrets', { ...own, name: 'other' })])).toEqual([
      'a: get secrets in bullion-system',
    ]);
    expect(missing(rights, [call('a', 'get', 'secrets', { name: 'keys' })])).toEqual(['a: get secrets']);
  });

  it('names a right that nobody used; within a group one use is enough for all that share it', () => {
    const rights = [
      right('a', 'get', 'pods'),
      right('b', 'get', 'pods'),
      right('b', 'list', 'pods'),
      right('c', 'get', 'pods'),
    ];
    const calls = [call('a', 'get', 'pods'), call('a', 'list', 'pods')];
    expect(unused(rights, calls, ['a', 'b'])).toEqual(['b: list pods', 'c: get pods']);
    expect(unused(rights, calls, [])).toEqual(['b: get pods', 'b: list pods', 'c: get pods']);
  });
});

/** Granted for others than our own code, each with who asks for it. */
const demanded: readonly RegExp[] = [
  // Knative lets a source work only when its account may `get` what it watches.
  /^sources: get /,
];

const folder = process.env['BULLION_CALLS_OF'] ?? '';

describe.skipIf(folder === '')('roles and the calls of a whole run', () => {
  const calls = folder === '' ? [] : readCalls(folder);
  const rights = rightsOf(manifests);

  it('every account was seen', () => {
    expect([...new Set(calls.map(({ account }) => account))].toSorted()).toEqual(
      [...new Set(rights.map(({ account }) => account))].toSorted(),
    );
  });

  it('nothing was called that is not granted', () => {
    expect(missing(rights, calls)).toEqual([]);
  });

  it('nothing is granted that was never called', () => {
    const left = unused(rights, calls, drivers).filter((text) => !demanded.some((pattern) => pattern.test(text)));
    expect(left).toEqual([]);
  });
});
