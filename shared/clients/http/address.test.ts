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
    '::ffff:127.0.0.1',
    '::ffff:169.254.169.254',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    '2002:7f00:1::',
    '2002:a9fe:a9fe::1',
    'not an address',
    '',
  ])('refuses %s', (address) => {
    expect(isRefused(address)).toBe(true);
  });

  it.each(['10.0.0.1', '192.168.1.1', '172.16.0.1', '8.8.8.8', '2001:db8::1', 'fd12:3456::1', '64:ff9b::808:808'])(
    'lets %s through',
    (address) => {
      expect(isRefused(address)).toBe(false);
    },
  );

  it('lets through what is allowed, and nothing beside it', () => {
    const withLoopback = createAddressPolicy(['127.0.0.0/8', '::1']);
    expect(withLoopback('127.0.0.1')).toBe(false);
    expect(withLoopback('::ffff:127.0.0.1')).toBe(false);
    expect(withLoopback('::1')).toBe(false);
    expect(withLoopback('169.254.169.254')).toBe(true);
  });

  it.each(['10.0.0.0/33', 'nowhere', '10.0.0/8', '10.0.0.0/-1', '10.0.0.0/8/8', '::1/129'])(
    'refuses the range %s',
    (cidr) => {
      expect(() => createAddressPolicy([cidr])).toThrow(InvalidInput);
    },
  );

  it('refuses every loopback address, however it is embedded', () => {
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), fc.nat(255), (a, b, c) => {
        const address = `127.${a}.${b}.${c}`;
        expect(isRefused(address)).toBe(true);
        expect(isRefused(`::ffff:${address}`)).toBe(true);
        expect(isRefused(`64:ff9b::${address}`)).toBe(true);
      }),
    );
  });
});
