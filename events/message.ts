// Converts a CloudEvent from and to an HTTP message, in binary and structured mode. The `cloudevents` package misreads content types, falsy data,
// missing ids and header encodings, so the message is parsed here and the package only validates the attributes. Called by senders, receive.ts and
// the broker.
import { toEvent, undecodable } from '#events/event.ts';
import { type CloudEvent, type MediaType, isJson, parseMediaType, type Message } from '#events/event.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const structuredType = 'application/cloudevents+json';

/** Whether a message declares itself a CloudEvent, in either mode. */
export const isCloudEvent = (headers: Headers): boolean =>
  headers.has('ce-specversion') ||
  parseMediaType(headers.get('content-type') ?? '').essence.startsWith('application/cloudevents');

/** Decodes one event; throws InvalidInput that names every error. */
export const decodeEvent = (headers: Headers, body: Uint8Array): CloudEvent => {
  const contentType = headers.get('content-type') ?? undefined;
  const media = parseMediaType(contentType);
  if (media.essence === structuredType) return fromStructured(parseJson(toText(body, media)));
  if (media.essence.startsWith('application/cloudevents')) {
    throw undecodable([
      { field: 'content-type', message: `is ${media.essence}; send one event as ${structuredType} or in binary mode` },
    ]);
  }
  return fromBinary(headers, contentType, body);
};

const fromBinary = (headers: Headers, contentType: string | undefined, body: Uint8Array): CloudEvent => {
  const attributes: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of headers) {
    if (name.startsWith('ce-')) attributes[name.slice(3)] = decodeHeader(value);
  }
  if (Object.keys(attributes).length === 0) {
    throw undecodable([
      { field: 'ce-specversion', message: 'is missing: this is not a CloudEvent in binary or structured mode' },
    ]);
  }
  const reserved = ['data', 'datacontenttype'].filter((name) => name in attributes);
  if (reserved.length > 0) {
    throw undecodable(
      reserved.map((name) => ({ field: `ce-${name}`, message: 'may not be a header: use content-type and the body' })),
    );
  }
  const event = toEvent({ ...attributes, datacontenttype: contentType });
  return body.length === 0 ? event : { ...event, data: decodeData(body, contentType) };
};

const fromStructured = (value: unknown): CloudEvent => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw undecodable([{ field: 'body', message: 'must be one JSON object' }]);
  }
  const { data, data_base64: base64, ...attributes } = value as Record<string, unknown>;
  if (data !== undefined && base64 !== undefined) {
    throw undecodable([{ field: 'data_base64', message: 'may not be given together with data' }]);
  }
  const event = toEvent(attributes);
  if (base64 === undefined) return data === undefined ? event : { ...event, data };
  return { ...event, data: decodeData(parseBase64(base64), event.datacontenttype) };
};

/** Raw UTF-8 (which HTTP passes as Latin-1), double-quoted strings and percent-encoding, as in the HTTP protocol binding (3.1.3.2). */
const decodeHeader = (value: string): string => {
  const utf8 = /[\u0080-\u00ff]/.test(value) ? (decodeUtf8(Buffer.from(value, 'latin1')) ?? value) : value;
  const text = /^".*"$/s.test(utf8) && utf8.length > 1 ? utf8.slice(1, -1).replace(/\\(.)/gs, '$1') : utf8;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const decodeData = (body: Uint8Array, contentType: string | undefined): unknown => {
  const media = parseMediaType(contentType);
  if (isJson(media)) return parseJson(toText(body, media));
  return decodeUtf8(body) ?? body;
};

const decodeUtf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
};

const toText = (body: Uint8Array, { charset }: MediaType): string => {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(body);
  } catch (error) {
    throw undecodable([{ field: 'body', message: `is not valid ${charset} text: ${messageOf(error)}` }]);
  }
};

const parseJson = (text: string): unknown => {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw undecodable([{ field: 'body', message: `is not valid JSON: ${messageOf(error)}` }]);
  }
};

const parseBase64 = (value: unknown): Uint8Array => {
  if (typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value)) return Buffer.from(value, 'base64');
  throw undecodable([{ field: 'data_base64', message: 'is not valid base64' }]);
};

/** Encodes a CloudEvent as an HTTP message. */
export type Encoding = 'binary' | 'structured';

/**
 * Binary mode when requested, unless an attribute is unsafe in a header: receivers disagree on percent-encoding, non-ASCII, quotes and spaces,
 * so such an event is sent in structured mode.
 */
export const encodeEvent = (event: CloudEvent, encoding: Encoding = 'binary'): Message =>
  encoding === 'structured' || !isHeaderSafe(event) ? encodeStructured(event) : encodeBinary(event);

const headerSafe = /^[\x21\x23\x24\x26-\x7e]*$/;

const isHeaderSafe = (event: CloudEvent): boolean =>
  Object.values(attributesOf(event)).every((value) => headerSafe.test(String(value)));

const attributesOf = ({ id, source, type, subject, time, dataschema, extensions }: CloudEvent) => {
  const attributes: Record<string, string | number | boolean> = { specversion: '1.0', id, source, type };
  for (const [name, value] of Object.entries({ subject, time, dataschema })) {
    if (value !== undefined) attributes[name] = value;
  }
  return { ...attributes, ...extensions };
};

const encodeBinary = (event: CloudEvent): Message => {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributesOf(event))) headers[`ce-${name}`] = String(value);
  if (event.datacontenttype !== undefined) headers['content-type'] = event.datacontenttype;
  return { headers, body: bodyOf(event) };
};

const bodyOf = ({ data, datacontenttype }: CloudEvent): string | Uint8Array => {
  if (data === undefined) return '';
  if (data instanceof Uint8Array) return data;
  const isText = typeof data === 'string' && !isJson(parseMediaType(datacontenttype));
  return isText ? data : JSON.stringify(data);
};

const encodeStructured = (event: CloudEvent): Message => {
  const { datacontenttype, data } = event;
  const content = data instanceof Uint8Array ? { data_base64: Buffer.from(data).toString('base64') } : { data };
  const body = JSON.stringify({ ...attributesOf(event), datacontenttype, ...content });
  return { headers: { 'content-type': 'application/cloudevents+json' }, body };
};
