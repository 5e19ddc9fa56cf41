// Decodes the protobuf bodies that kubectl's `create` and `auth` commands send for built-in kinds, into the equivalent JSON.
import table from './messages.json' with { type: 'json' };
import { createReader, type Reader } from './reader.ts';
import { badRequest } from '#local-cluster/api-server/status/status.ts';

// Messages whose JSON is not an object of their fields: quantities, times, int-or-string, raw JSON.

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
const specialTypes: Readonly<Record<string, Convert>> = {
  'resource.Quantity': quantity,
  'meta.Time': time(0),
  'meta.MicroTime': time(6),
  'intstr.IntOrString': intOrString,
  'meta.FieldsV1': rawJson,
  'runtime.RawExtension': rawJson,
  strings,
};

interface Field {
  readonly name: string;
  readonly type: string;
  /** A zero value is meaningful: it is written anyway. */
  readonly keepsZero: boolean;
}

type Json = Record<string, unknown>;

const messages: Readonly<Record<string, string>> = table;

const tables = new Map<string, ReadonlyMap<number, Field>>();

const parseTable = (text: string): ReadonlyMap<number, Field> =>
  new Map(
    text
      .split(' ')
      .filter((item) => item !== '')
      .map((item): [number, Field] => {
        const [number = '', name = '', type = ''] = item.split(':');
        return [Number.parseInt(number, 10), { name, type, keepsZero: number.endsWith('!') }];
      }),
  );

const fieldsOf = (message: string): ReadonlyMap<number, Field> => {
  const known = tables.get(message);
  if (known !== undefined) return known;
  const table = parseTable(messages[message] ?? '');
  tables.set(message, table);
  return table;
};

const isZero = (value: unknown): boolean => value === '' || value === 0 || value === false || value === undefined;

/** One value of a type other than lists and maps. */
const readValue = (reader: Reader, wire: number, type: string): unknown => {
  if (type === 'int') return reader.int();
  if (type === 'bool') return reader.int() !== 0;
  if (type === 'double') return reader.double();
  if (wire !== 2) return reader.skip(wire);
  const bytes = reader.bytes();
  if (type === 'string') return Buffer.from(bytes).toString();
  if (type === 'bytes') return Buffer.from(bytes).toString('base64');
  return specialTypes[type]?.(bytes) ?? (type in specialTypes ? undefined : decodeMessage(bytes, type));
};

/** Adds one entry of a map to the existing ones. */
const readEntry = (reader: Reader, type: string, map: Json): void => {
  const entry = createReader(reader.bytes());
  let key = '';
  let value: unknown = type === 'string' ? '' : undefined;
  while (!entry.done()) {
    const { number, wire } = entry.tag();
    if (number === 1) key = Buffer.from(entry.bytes()).toString();
    else value = readValue(entry, wire, type);
  }
  map[key] = value;
};

const put = (object: Json, field: Field, reader: Reader, wire: number): void => {
  const { name, type, keepsZero } = field;
  if (type.startsWith('{}')) {
    readEntry(reader, type.slice(2), (object[name] ??= {}) as Json);
    return;
  }
  if (type.startsWith('[]')) {
    ((object[name] ??= []) as unknown[]).push(readValue(reader, wire, type.slice(2)));
    return;
  }
  const value = readValue(reader, wire, type);
  if (name === '') Object.assign(object, value);
  else if (keepsZero || !isZero(value)) object[name] = value;
};

const decodeMessage = (bytes: Uint8Array, message: string): Json => {
  const reader = createReader(bytes);
  const fields = fieldsOf(message);
  const object: Json = {};
  while (!reader.done()) {
    const { number, wire } = reader.tag();
    const field = fields.get(number);
    if (field === undefined) reader.skip(wire);
    else put(object, field, reader, wire);
  }
  return object;
};

const magic = Buffer.from([0x6b, 0x38, 0x73, 0]);

/** Go package of an API group, as in the table. */
const packageOf = (apiVersion: string): string => {
  const [group = '', version] = apiVersion.split('/');
  if (version === undefined) return 'core';
  const [first = ''] = group.split('.');
  return first;
};

interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Uint8Array;
}

const readType = (bytes: Uint8Array): Omit<Envelope, 'raw'> => {
  const reader = createReader(bytes);
  const found = ['', '', ''];
  while (!reader.done()) {
    const { number, wire } = reader.tag();
    if (number === 1 || number === 2) found[number] = Buffer.from(reader.bytes()).toString();
    else reader.skip(wire);
  }
  return { apiVersion: found[1] ?? '', kind: found[2] ?? '' };
};

const readEnvelope = (bytes: Uint8Array): Envelope => {
  const reader = createReader(bytes.subarray(magic.length));
  let type = { apiVersion: '', kind: '' };
  let raw: Uint8Array = new Uint8Array();
  while (!reader.done()) {
    const { number, wire } = reader.tag();
    if (number === 1) type = readType(reader.bytes());
    else if (number === 2) raw = reader.bytes();
    else reader.skip(wire);
  }
  return { ...type, raw };
};

/** The object in a protobuf body, as JSON. Throws a 400 for anything else and for unknown kinds. */
export const decodeProtobuf = (bytes: Uint8Array): Json => {
  if (!Buffer.from(bytes.subarray(0, magic.length)).equals(magic)) {
    throw badRequest('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]');
  }
  const { apiVersion, kind, raw } = readEnvelope(bytes);
  const message = kind === 'DeleteOptions' ? 'meta.DeleteOptions' : `${packageOf(apiVersion)}.${kind}`;
  if (messages[message] === undefined)
    throw badRequest(`no kind "${kind}" is registered for version "${apiVersion}" as protobuf`);
  return { apiVersion, kind, ...decodeMessage(raw, message) };
};
