// Reads request bodies: JSON or YAML, bounded in size.
import { parse } from 'yaml';
import { findDuplicateFields } from '../objects/duplicate-fields.ts';
import { badRequest, failure, unsupportedMediaType } from '../status/status.ts';

const limitBytes = 3 * 1024 * 1024;
const accepted = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];

export const mediaTypeOf = (request: Request): string =>
  (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

export const readText = async (request: Request): Promise<string> => {
  const text = await request.text();
  if (Buffer.byteLength(text) > limitBytes) {
    throw failure({
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: `Request entity too large: limit is ${limitBytes}`,
    });
  }
  return text;
};

const parseAs = (text: string, parser: (text: string) => unknown): unknown => {
  try {
    return parser(text);
  } catch (error) {
    throw badRequest(
      `couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
};

export interface Body {
  /** Undefined when the body is empty. */
  readonly value: unknown;
  /** `duplicate field "data"` */
  readonly strictErrors: readonly string[];
}

/** The body as JSON values, with what field validation has to say of the text. */
export const readDocument = async (request: Request): Promise<Body> => {
  const type = mediaTypeOf(request);
  if (type !== '' && type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType(accepted);
  const text = await readText(request);
  if (text.trim() === '') return { value: undefined, strictErrors: [] };
  if (type === 'application/yaml') return { value: parseAs(text, (yaml) => parse(yaml) as unknown), strictErrors: [] };
  const value = parseAs(text, (json) => JSON.parse(json) as unknown);
  return { value, strictErrors: findDuplicateFields(text).map((path) => `duplicate field "${path}"`) };
};

/** The body as JSON values; undefined when it is empty. */
export const readBody = async (request: Request): Promise<unknown> => (await readDocument(request)).value;
