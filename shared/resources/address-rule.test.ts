import { describe, expect, it } from 'vitest';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { addressFaults, addressRules, urlFields } from '#shared/resources/address-rule.ts';
import { meaningOf, texts } from '#test/support/texts.ts';

const isRefused = createAddressPolicy([]);
const fieldsOf = (spec: object, policy = isRefused): readonly string[] =>
  addressFaults({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a' }, spec } as never, policy).map(
    ({ field }) => field,
  );

const fieldsWithUrl = [...new Set(texts.filter((text) => meaningOf(text) === 'url').map(({ path }) => path))];

describe('the fields', () => {
  it('are all that may be a URL: add to urlFields what has the meaning url in test/support/texts.ts', () => {
    expect(urlFields.toSorted()).toEqual(fieldsWithUrl.toSorted());
  });

  it.each(fieldsWithUrl)('are looked at: %s', (field) => {
    const within = (value: string) =>
      field
        .split('.')
        .slice(1)
        .reduceRight<unknown>((inner, step) => ({ [step]: inner }), value) as object;
    expect(fieldsOf(within('docker://169.254.169.254/disk:1'))).toEqual([field]);
    expect(fieldsOf(within('docker://registry.example/disk:1'))).toEqual([]);
  });
});

describe('an address that no transfer may connect to is rejected', () => {
  it.each<[field: string, spec: object]>([
    ['spec.source.http', { source: { http: 'http://169.254.169.254/latest' } }],
    ['spec.url', { url: 'https://127.0.0.1/disk' }],
    ['spec.url', { url: 'http://localhost:8080/disk' }],
    ['spec.source.http.url', { source: { http: { url: 'http://0x7f.1/disk' } } }],
    ['spec.source.http.url', { source: { http: { url: 'http://2130706433/disk' } } }],
    ['spec.source.http.url', { source: { http: { url: 'http://[::ffff:169.254.169.254]/disk' } } }],
    ['spec.source.registry.url', { source: { registry: { url: 'docker://100.100.100.200/a:b' } } }],
    ['spec.source.s3.url', { source: { s3: { url: 'http://169.254.169.254/bucket/key' } } }],
    ['spec.source.http.checksumURL', { source: { http: { checksumURL: 'http://169.254.169.254/sums' } } }],
    ['spec.destination.s3.url', { destination: { s3: { url: 'http://169.254.169.254/bucket/key' } } }],
    ['spec.destination.registry.url', { destination: { registry: { url: 'docker://127.0.0.1:5000/a:b' } } }],
    ['spec.verify.signature.gpg.checksums', { verify: { signature: { gpg: { checksums: 'http://[::1]/SUMS' } } } }],
    [
      'spec.template.spec.source.registry.url',
      { template: { spec: { source: { registry: { url: 'docker://127.0.0.1:5000/a' } } } } },
    ],
  ])('in %s', (field, spec) => {
    expect(fieldsOf(spec)).toEqual([field]);
  });

  it.each([
    ['a private network', { url: 'https://10.1.2.3/disk' }],
    ['a name, whatever it leads to', { url: 'https://metadata.example/disk' }],
    ['no URL', { url: 'nowhere', source: { http: 5 } }],
    ['no source', {}],
  ])('but %s is accepted', (_what, spec) => {
    expect(fieldsOf(spec)).toEqual([]);
  });

  it('and an allowed address is accepted', () => {
    expect(fieldsOf({ url: 'http://127.0.0.1/disk' }, createAddressPolicy(['127.0.0.0/8']))).toEqual([]);
  });

  it('after an update only where it was written', async () => {
    const policyWith = (gpg: object) =>
      ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a' }, spec: { verify: { signature: { gpg } } } }) as never;
    const [old, both] = [{ checksums: 'http://127.0.0.1/SUMS' }, { signature: 'http://127.0.0.1/SUMS.gpg' }];
    const asked = { object: policyWith({ ...old, ...both }), before: policyWith(old) } as never;
    const faults = await addressRules(isRefused)
      .find(({ on }) => on === 'UPDATE')!
      .check(asked);
    expect(faults.map(({ field }) => field)).toEqual(['spec.verify.signature.gpg.signature']);
  });
});
