// The authorities that transfers trust: those in Harvester's setting, read once a minute at most.
import { describe, expect, it } from 'vitest';
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import { createTrustLook, trusting } from './network-settings.ts';
import { testSettings, testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const minute = 60_000;
const pem = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----';
const aSetting = (fields: { readonly value?: string; readonly default?: string }) => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'Setting',
  metadata: { name: 'additional-ca' },
  ...fields,
});

describe('the trusted authorities', () => {
  it.each<[what: string, fields: Parameters<typeof aSetting>[0] | undefined, found: string | undefined]>([
    ['the defaults without the setting', undefined, undefined],
    ['the defaults when it is empty', { value: '' }, undefined],
    ['those in the setting', { value: pem }, pem],
    ['those in its default', { value: '', default: pem }, pem],
  ])('are %s', async (_what, fields, found) => {
    const kube = createMemoryKube();
    if (fields !== undefined) kube.seed(harvesterSettings, aSetting(fields));
    expect(await createTrustLook(kube)()).toBe(found);
  });

  it('are the defaults without Harvester', async () => {
    expect(await createTrustLook(createMemoryKube({ absent: [harvesterSettings.plural] }))()).toBeUndefined();
  });

  it('are read again after a minute', async () => {
    let time = testTime;
    const kube = createMemoryKube();
    const look = createTrustLook(kube, () => time);
    expect(await look()).toBeUndefined();
    kube.seed(harvesterSettings, aSetting({ value: pem }));
    expect(await look()).toBeUndefined();
    time += minute;
    expect(await look()).toBe(pem);
  });

  it('are rejected when they are too large for a Job', async () => {
    const kube = createMemoryKube();
    kube.seed(harvesterSettings, aSetting({ value: 'x'.repeat(100_001) }));
    await expect(createTrustLook(kube)()).rejects.toThrow(/additional-ca is too long/);
  });
});

describe('the environment of Jobs', () => {
  it('is unchanged without additional authorities', () => {
    expect(trusting(testSettings, undefined)).toBe(testSettings);
  });

  it.each([
    ['alone', undefined, { none: [], ca: pem }],
    [
      'beside a proxy and its authority',
      { https: 'http://p', none: ['a'], ca: 'own' },
      { https: 'http://p', none: ['a'], ca: `own\n${pem}` },
    ],
  ])('contains the trusted authorities, %s', (_what, proxies, told) => {
    expect(trusting({ ...testSettings, proxies }, pem)).toMatchObject({ additionalCa: pem, proxies: told });
  });
});
