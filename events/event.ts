// A CloudEvent in the product: attributes as received, and their rules; data decoded. Created by receive.ts, read by senders and the broker.
import { CloudEvent as SdkEvent, ValidationError } from 'cloudevents';
import { type Fault, InvalidInput } from '#shared/runtime/errors.ts';

export type ExtensionValue = string | number | boolean;

export interface CloudEvent<D = unknown, T extends string = string> {
  readonly id: string;
  readonly source: string;
  readonly type: T;
  readonly subject?: string | undefined;
  /** RFC 3339, as the sender wrote it. */
  readonly time?: string | undefined;
  readonly datacontenttype?: string | undefined;
  /** Absolute URI. */
  readonly dataschema?: string | undefined;
  /** Names are lower-case letters and digits. Binary mode contains only strings. */
  readonly extensions: Readonly<Record<string, ExtensionValue>>;
  /** JSON for JSON content types; otherwise text, or bytes that are not valid text. */
  readonly data?: D | undefined;
}

/** An event as an HTTP request or reply. Header names are lower case. */
export interface Message {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

export const extensionName = /^[a-z0-9]+$/;

export interface MediaType {
  /** Lower case, without parameters; empty when there is none. */
  readonly essence: string;
  /** Lower case; UTF-8 by default. */
  readonly charset: string;
}

export const parseMediaType = (value: string | undefined): MediaType => {
  const [essence = '', ...parameters] = (value ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => /^charset\s*=/.test(parameter));
  return { essence, charset: charset?.replace(/^charset\s*=\s*/, '').replaceAll('"', '') ?? 'utf-8' };
};

export const isJson = ({ essence }: MediaType): boolean => essence.endsWith('/json') || essence.endsWith('+json');

/** The attributes of an event, validated all at once: presence and types here, formats by the `cloudevents` package. */
const coreAttributes = ['id', 'source', 'type', 'subject', 'time', 'datacontenttype', 'dataschema'] as const;
const requiredAttributes = ['id', 'source', 'type'] as const;
const rfc3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,18})?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** Validates all attributes at once. Unset values (`null`, and an empty optional attribute) are omitted. */
export const toEvent = (attributes: Readonly<Record<string, unknown>>): CloudEvent => {
  const core: Record<string, string> = {};
  const extensions: Record<string, ExtensionValue> = {};
  const faults: Fault[] = [];
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || name === 'specversion') continue;
    const fault = faultOfAttribute(name, value);
    if (fault !== undefined) faults.push({ field: name, message: fault });
    else if (isCore(name)) core[name] = value as string;
    else extensions[name] = value as ExtensionValue;
  }
  faults.push(...faultsOfCore(core, attributes['specversion']));
  if (faults.length > 0) throw undecodable(faults);
  const event = { id: '', source: '', type: '', ...core, extensions };
  judge(core);
  return event;
};

const isCore = (name: string): boolean => (coreAttributes as readonly string[]).includes(name);

const faultOfAttribute = (name: string, value: unknown): string | undefined => {
  if (isCore(name)) return typeof value === 'string' ? undefined : 'must be a string';
  if (!extensionName.test(name)) return 'is not a valid attribute name: use lower-case letters and digits';
  if (typeof value === 'string' || typeof value === 'boolean') return undefined;
  return Number.isSafeInteger(value) ? undefined : 'must be a string, a boolean or an integer';
};

const faultsOfCore = (core: Record<string, string>, specversion: unknown): Fault[] => {
  const faults: Fault[] = [];
  if (specversion !== '1.0')
    faults.push({
      field: 'specversion',
      message: `is ${JSON.stringify(specversion) ?? 'missing'}; only "1.0" is accepted`,
    });
  for (const name of coreAttributes) {
    if (core[name] === '') delete core[name];
  }
  for (const name of requiredAttributes) {
    if (core[name] === undefined) faults.push({ field: name, message: 'is missing or empty' });
  }
  const { time } = core;
  if (time !== undefined && !(rfc3339.test(time) && Number.isFinite(Date.parse(time)))) {
    faults.push({ field: 'time', message: 'is not an RFC 3339 time' });
  }
  return faults;
};

/** Extensions are not attributes of this object: an extension named `validate` would replace the method. */
const judge = (core: Readonly<Record<string, string>>): void => {
  try {
    SdkEvent.prototype.validate.call(new SdkEvent({ ...core, specversion: '1.0' }, false));
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const errors = (error.errors ?? []) as readonly { readonly instancePath?: string; readonly message?: string }[];
    throw undecodable(
      errors.map(({ instancePath = '', message = '' }) => ({ field: instancePath.replace(/^\//, ''), message })),
    );
  }
};

export const undecodable = (faults: readonly Fault[]): InvalidInput =>
  new InvalidInput(
    `not a valid CloudEvent: ${faults.map(({ field, message }) => `${field} ${message}`).join('; ')}`,
    faults,
  );
