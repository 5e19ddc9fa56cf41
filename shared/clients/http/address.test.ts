import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

describe('the address policy', () => {
  const isRefused = createAddressPolicy([]);

  it.each([
    '127.0.0.1',
    '127.8.9.10',
    '0.0.0.0',
    '169.254.169.254',
    '169.254.1.1',
    '224.0.0.1',
    '255.255.255.255',
    '100.100.100.200',
    '168.63.129.16',
    '::',
    '::1',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    'fd00:ec2::254',
    'fd00:ec2::253',
    'fd00:ec2::123',
    'fd00:ec2::23',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
    'fd00:42::42',
    '::ffff:0:169.254.169.254',
    '2001:0:808:808::5601:5601',
    '64:ff9b:1::a9fe:a9fe',
    '64:ff9b:1:a9fe:a9:fe00::',
    'fd00::5efe:a9fe:a9fe',
    '0000:0000:0000:0000:0000:ffff:7f00:0001',
    '::ffff:127.0.0.1',
    '::ffff:169.254.169.254',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    '2002:7f00:1::',
    '2002:a9fe:a9fe::1',
    'not an address',
    '',
  ])('rejects %s', (address) => {
    expect(isRefused(address)).toBe(true);
  });

  it.each([
    '10.0.0.1',
    '192.168.1.1',
    '172.16.0.1',
    '8.8.8.8',
    '2001:db8::1',
    'fd12:3456::1',
    '64:ff9b::808:808',
    '64:ff9b:1:fffe::808:808',
    '::ffff:10.0.0.1',
    '::ffff:0:8.8.8.8',
  ])('accepts %s', (address) => {
    expect(isRefused(address)).toBe(false);
  });

  it('accepts allowed addresses, and nothing else', () => {
    const withLoopback = createAddressPolicy(['127.0.0.0/8', '::1']);
    expect(withLoopback('127.0.0.1')).toBe(false);
    expect(withLoopback('::ffff:127.0.0.1')).toBe(false);
    expect(withLoopback('::1')).toBe(false);
    expect(withLoopback('169.254.169.254')).toBe(true);
  });

  it.each(['10.0.0.0/33', 'nowhere', '10.0.0/8', '10.0.0.0/-1', '10.0.0.0/8/8', '::1/129'])(
    'rejects the range %s',
    (cidr) => {
      expect(() => createAddressPolicy([cidr])).toThrow(InvalidInput);
    },
  );

  /** Ways to write an IPv4 address as IPv6; `free` fills the unspecified bytes. */
  const forms: Readonly<Record<string, (v4: readonly number[], free: readonly number[]) => readonly number[]>> = {
    mapped: (v4) => [...zeroes(10), 0xff, 0xff, ...v4],
    compatible: (v4) => [...zeroes(12), ...v4],
    translated: (v4) => [...zeroes(8), 0xff, 0xff, 0, 0, ...v4],
    nat64: (v4) => [0, 0x64, 0xff, 0x9b, ...zeroes(8), ...v4],
    'nat64 of the operator': (v4) => [0, 0x64, 0xff, 0x9b, 0, 1, 0xff, 0xfe, ...zeroes(4), ...v4],
    '6to4': (v4, free) => [0x20, 0x02, ...v4, ...free.slice(0, 2), 0, ...free.slice(3, 10)],
    teredo: (v4) => [0x20, 0x01, 0, 0, 8, 8, 8, 8, 0x80, 0, 1, 2, ...v4.map((byte) => byte ^ 0xff)],
    isatap: (v4) => [0x20, 0x01, 0x0d, 0xb8, ...zeroes(5), 0, 0x5e, 0xfe, ...v4],
    'isatap, known everywhere': (v4) => [0x20, 0x01, 0x0d, 0xb8, ...zeroes(4), 2, 0, 0x5e, 0xfe, ...v4],
  };
  /** Forms whose other bytes may also be read as an address, so that they reject more than the policy does. */
  const shortForms: typeof forms = {
    '/48': ([a = 0, b = 0, c = 0, d = 0], free) => [0, 0x64, 0xff, 0x9b, 0, 1, a, b, 0, c, d, ...free.slice(0, 5)],
    '/56': ([a = 0, b = 0, c = 0, d = 0], free) => [0, 0x64, 0xff, 0x9b, 0, 1, 9, a, 0, b, c, d, ...free.slice(0, 4)],
    '/64': (v4, free) => [0, 0x64, 0xff, 0x9b, 0, 1, 9, 9, 0, ...v4, ...free.slice(0, 3)],
    'teredo server': (v4, free) => [0x20, 0x01, 0, 0, ...v4, ...free.slice(0, 8)],
  };
  const zeroes = (count: number): number[] => Array.from({ length: count }, () => 0);
  const textOf = (bytes: readonly number[]): string =>
    Array.from({ length: 8 }, (_, at) => (((bytes[at * 2] ?? 0) << 8) | (bytes[at * 2 + 1] ?? 0)).toString(16)).join(
      ':',
    );

  const byte = fc.nat(255);
  const free = fc.array(byte, { minLength: 10, maxLength: 10 });
  const within = (first: fc.Arbitrary<number>) => fc.tuple(first, byte, byte, byte);
  const forwarded = fc.oneof(
    within(fc.constant(127)),
    fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
    fc.constantFrom([100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]),
  );
  const refusedV4 = fc.oneof(forwarded, within(fc.constant(0)), within(fc.integer({ min: 224, max: 255 })));

  it.each(Object.entries(forms))('treats every form as the address that is embedded: %s', (_, embed) => {
    fc.assert(
      fc.property(refusedV4, free, (v4, rest) => {
        expect([isRefused(v4.join('.')), isRefused(textOf(embed(v4, rest)))]).toEqual([true, true]);
      }),
    );
    fc.assert(
      fc.property(within(byte), free, (v4, rest) => {
        expect(isRefused(textOf(embed(v4, rest)))).toBe(isRefused(v4.join('.')));
      }),
      { examples: [[[8, 8, 8, 8], zeroes(10)]] },
    );
  });

  it.each(Object.entries(shortForms))('rejects an embedded address, whatever follows it: %s', (_, embed) => {
    fc.assert(
      fc.property(forwarded, free, (v4, rest) => {
        expect(isRefused(textOf(embed(v4, rest)))).toBe(true);
      }),
    );
  });

  it('parses an address to the same value in every spelling', () => {
    fc.assert(
      fc.property(fc.array(byte, { minLength: 16, maxLength: 16 }), (bytes) => {
        const long = textOf(bytes);
        expect(isRefused(long)).toBe(isRefused(new URL(`http://[${long}]`).hostname.slice(1, -1)));
        expect(isRefused(long.toUpperCase())).toBe(isRefused(long));
      }),
    );
  });

  it('accepts the embedded forms of an allowed address, and no others', () => {
    const withLoopback = createAddressPolicy(['127.0.0.0/8']);
    for (const embed of Object.values(forms)) {
      expect(withLoopback(textOf(embed([127, 0, 0, 1], zeroes(10))))).toBe(false);
      expect(withLoopback(textOf(embed([169, 254, 169, 254], zeroes(10))))).toBe(true);
    }
  });
});
