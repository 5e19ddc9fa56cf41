// Iterates over the bytes of one protobuf message.
import { badRequest } from '../status/status.ts';

export interface Reader {
  readonly done: () => boolean;
  readonly tag: () => { readonly number: number; readonly wire: number };
  /** A varint as a signed number; beyond 2^53 it loses precision. */
  readonly int: () => number;
  readonly double: () => number;
  readonly bytes: () => Uint8Array;
  readonly skip: (wire: number) => void;
}

const truncated = () => badRequest('the protobuf body ends in the middle of a field');

export const createReader = (data: Uint8Array): Reader => {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;

  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = data[at];
      if (byte === undefined) throw truncated();
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw truncated();
  };

  const take = (length: number): Uint8Array => {
    if (at + length > data.length) throw truncated();
    at += length;
    return data.subarray(at - length, at);
  };

  const bytes = (): Uint8Array => take(Number(varint()));

  return {
    done: () => at >= data.length,
    tag: () => {
      const value = Number(varint());
      return { number: value >> 3, wire: value & 7 };
    },
    int: () => Number(BigInt.asIntN(64, varint())),
    double: () => {
      take(8);
      return view.getFloat64(at - 8, true);
    },
    bytes,
    skip: (wire) => {
      if (wire === 0) varint();
      else if (wire === 2) bytes();
      else take(wire === 1 ? 8 : 4);
    },
  };
};
