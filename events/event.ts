// A CloudEvent as the product handles it: attributes as they came, data decoded. Written by receive.ts, read by send.ts and the broker.

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
  /** Names are lower-case letters and digits. Binary mode carries texts only. */
  readonly extensions: Readonly<Record<string, ExtensionValue>>;
  /** JSON for JSON content types; otherwise text, or bytes where they are no text. */
  readonly data?: D | undefined;
}

/** An event on its way: what an HTTP request or reply holds. Header names are lower case. */
export interface Message {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

export const extensionName = /^[a-z0-9]+$/;

export interface MediaType {
  /** Lower case, without parameters; empty when there is none. */
  readonly essence: string;
  /** Lower case; UTF-8 when not said. */
  readonly charset: string;
}

export const parseMediaType = (value: string | undefined): MediaType => {
  const [essence = '', ...parameters] = (value ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => /^charset\s*=/.test(parameter));
  return { essence, charset: charset?.replace(/^charset\s*=\s*/, '').replaceAll('"', '') ?? 'utf-8' };
};

export const isJson = ({ essence }: MediaType): boolean => essence.endsWith('/json') || essence.endsWith('+json');
