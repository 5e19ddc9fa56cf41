// Messages whose JSON is not an object of their fields: quantities, times, int-or-string, raw JSON.
import { type Reader, createReader } from './reader.ts';

type Convert = (bytes: Uint8Array) => unknown;

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

/** Called for each field. */
const walk = (bytes: Uint8Array, visit: (number: number, wire: number, reader: Reader) => void): void => {
  const reader = createReader(bytes);
  while (!reader.done()) {
    const { number, wire } = reader.tag();
    visit(number, wire, reader);
  }
};

const quantity: Convert = (bytes) => {
  let value = '0';
  walk(bytes, (number, wire, reader) => {
    if (number === 1) value = text(reader.bytes());
    else reader.skip(wire);
  });
  return value;
};

/** `digits` after the seconds; an unset time is omitted. */
const time =
  (digits: number): Convert =>
  (bytes) => {
    let seconds = 0;
    let nanos = 0;
    walk(bytes, (number, wire, reader) => {
      if (number === 1) seconds = reader.int();
      else if (number === 2) nanos = reader.int();
      else reader.skip(wire);
    });
    if (seconds <= 0) return undefined;
    const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
    return digits === 0 ? `${whole}Z` : `${whole}.${String(nanos).padStart(9, '0').slice(0, digits)}Z`;
  };

const intOrString: Convert = (bytes) => {
  let isText = false;
  let int = 0;
  let string = '';
  walk(bytes, (number, wire, reader) => {
    if (number === 1) isText = reader.int() === 1;
    else if (number === 2) int = reader.int();
    else if (number === 3) string = text(reader.bytes());
    else reader.skip(wire);
  });
  return isText ? string : int;
};

const rawJson: Convert = (bytes) => {
  let value: unknown;
  walk(bytes, (number, wire, reader) => {
    if (number === 1) value = JSON.parse(text(reader.bytes())) as unknown;
    else reader.skip(wire);
  });
  return value;
};

const strings: Convert = (bytes) => {
  const items: string[] = [];
  walk(bytes, (number, wire, reader) => {
    if (number === 1) items.push(text(reader.bytes()));
    else reader.skip(wire);
  });
  return items;
};

/** By the name in the table. */
export const specialTypes: Readonly<Record<string, Convert>> = {
  'resource.Quantity': quantity,
  'meta.Time': time(0),
  'meta.MicroTime': time(6),
  'intstr.IntOrString': intOrString,
  'meta.FieldsV1': rawJson,
  'runtime.RawExtension': rawJson,
  strings,
};
