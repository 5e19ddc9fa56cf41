// CloudEvent → HTTP message. Called by send.ts, the chassis (replies) and the broker.
import { type CloudEvent, type Message, isJson, parseMediaType } from '#events/event.ts';

export type Encoding = 'binary' | 'structured';

/**
 * Binary mode as asked for, unless an attribute is unsafe in a header: receivers disagree on percent-encoding, non-ASCII, quotes and spaces,
 * so such an event goes out structured.
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
