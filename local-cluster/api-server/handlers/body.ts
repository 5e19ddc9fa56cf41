// Parses request bodies: JSON, YAML or (built-in kinds) protobuf, with a limit on the size.
import { parse } from 'yaml';
import { decodeProtobuf } from '../protobuf/decode.ts';
import { findDuplicateFields } from '../objects/duplicate-fields.ts';
import { badRequest, failure, unsupportedMediaType } from '../status/status.ts';

const limitBytes = 3 * 1024 * 1024;
const protobuf = 'application/vnd.kubernetes.protobuf';
const accepted = ['application/json', 'application/yaml', protobuf];

export const mediaTypeOf = (request: Request): string =>
  (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

const readBytes = async (request: Request): Promise<Uint8Array> => {
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.byteLength <= limitBytes) return bytes;
  throw failure({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${limitBytes}`,
  });
};

export const readText = async (request: Request): Promise<string> => Buffer.from(await readBytes(request)).toString();

const parseAs = (text: string, parser: (text: string) => unknown): unknown => {
  try {
    return parser(text);
  } catch (error) {
    throw badRequest(
      `couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
};

/** Parses YAML, with a fast path for JSON, which nearly all bodies are: a YAML parser takes a hundred times as long. */
export const parseYaml = (text: string): unknown => {
  if (!text.startsWith('{')) return parse(text) as unknown;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return parse(text) as unknown;
  }
};

export interface Body {
  /** Undefined when the body is empty. */
  readonly value: unknown;
  /** `duplicate field "data"` */
  readonly strictErrors: readonly string[];
}

/** The body as JSON values, with the errors that field validation finds in the text. */
export const readDocument = async (request: Request): Promise<Body> => {
  const type = mediaTypeOf(request);
  if (type === protobuf) return { value: decodeProtobuf(await readBytes(request)), strictErrors: [] };
  if (type !== '' && type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType(accepted);
  const text = await readText(request);
  if (text.trim() === '') return { value: undefined, strictErrors: [] };
  if (type === 'application/yaml') return { value: parseAs(text, parseYaml), strictErrors: [] };
  const value = parseAs(text, (json) => JSON.parse(json) as unknown);
  return { value, strictErrors: findDuplicateFields(text).map((path) => `duplicate field "${path}"`) };
};

/** The body as JSON values; undefined when it is empty. */
export const readBody = async (request: Request): Promise<unknown> => (await readDocument(request)).value;
