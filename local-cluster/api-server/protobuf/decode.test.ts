import { describe, expect, test } from 'vitest';
import { decodeProtobuf } from './decode.ts';

/** A length-delimited field. */
const field = (number: number, ...content: (Uint8Array | string)[]): Buffer => {
  const body = Buffer.concat(content.map((part) => Buffer.from(part as string)));
  return Buffer.concat([Buffer.from([(number << 3) | 2, body.length]), body]);
};
const varint = (number: number, value: number): Buffer => Buffer.from([number << 3, value]);

const envelope = (apiVersion: string, kind: string, ...raw: Uint8Array[]): Buffer =>
  Buffer.concat([Buffer.from('k8s\0'), field(1, field(1, apiVersion), field(2, kind)), field(2, ...raw)]);

describe('decodeProtobuf', () => {
  test('decodes texts, maps and metadata, and omits empty values', () => {
    const metadata = field(1, field(1, 'a'), field(2, ''), field(11, field(1, 'x'), field(2, 'y')));
    const body = envelope('v1', 'ConfigMap', metadata, field(2, field(1, 'k'), field(2, 'v')));
    expect(decodeProtobuf(body)).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', labels: { x: 'y' } },
      data: { k: 'v' },
    });
  });

  test('keeps a meaningful zero', () => {
    const body = envelope('apps/v1', 'Deployment', field(2, varint(1, 0)));
    expect(decodeProtobuf(body)).toMatchObject({ spec: { replicas: 0 } });
  });

  test('decodes quantities, int-or-string and embedded Go structs', () => {
    const quantity = field(1, '1Gi');
    const claim = envelope(
      'v1',
      'PersistentVolumeClaim',
      field(2, field(2, field(2, field(1, 'storage'), field(2, quantity)))),
    );
    expect(decodeProtobuf(claim)).toMatchObject({ spec: { resources: { requests: { storage: '1Gi' } } } });
    const volume = field(1, field(1, 'v'), field(2, field(2)));
    expect(decodeProtobuf(envelope('v1', 'Pod', field(2, volume)))).toMatchObject({
      spec: { volumes: [{ name: 'v', emptyDir: {} }] },
    });
  });

  test.each([
    ['no protobuf', Buffer.from('{}'), 'does not appear to be a protobuf message'],
    ['an unknown kind', envelope('v1', 'Nothing'), 'no kind "Nothing"'],
    ['a cut body', envelope('v1', 'ConfigMap', field(1, 'x')).subarray(0, -1), 'ends in the middle'],
  ])('%s is rejected', (_, body, message) => {
    expect(() => decodeProtobuf(body)).toThrow(message);
  });
});
