// Parses request bodies: JSON, YAML or (built-in kinds) protobuf, with a limit on the size.
import { parse } from 'yaml';
import type { Call } from './call.ts';
import type { WriteOptions } from './options.ts';
import { decodeAs } from '#local-cluster/api-server/objects/decode.ts';
import type { Fields } from '#local-cluster/api-server/objects/object.ts';
import { decodeProtobuf } from '#local-cluster/api-server/protobuf/decode.ts';
import type { Subresource } from '#local-cluster/api-server/registry/resource.ts';
import { builtinSchema } from '#local-cluster/api-server/schema/builtin.ts';
import { badRequest, failure, unsupportedMediaType } from '#local-cluster/api-server/status/status.ts';

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

interface Body {
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

// Parses the bodies of subresources that have a kind of their own.

/** The body of a subresource, as the kind it accepts. */
export const readAs = async (call: Call, sub: Subresource, options: WriteOptions): Promise<Fields> => {
  const group = sub.group ?? call.resource.group;
  const version = sub.version ?? call.resource.version;
  const schema = builtinSchema(group, version, sub.kind) ?? {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const body = (await readBody(call.request)) ?? {};
  return decodeAs(body, { group, version, kind: sub.kind }, schema, {
    fieldValidation: options.fieldValidation,
    warn: (text) => call.warnings.add(text),
  });
};

// Finds duplicate fields in a JSON text, which JSON.parse would drop silently.

interface Scanner {
  readonly text: string;
  at: number;
}

const skipSpace = (scanner: Scanner): void => {
  while (/\s/.test(scanner.text[scanner.at] ?? '')) scanner.at += 1;
};

/** Skips a string and returns its value. */
const readString = (scanner: Scanner): string => {
  const start = scanner.at;
  scanner.at += 1;
  while (scanner.at < scanner.text.length && scanner.text[scanner.at] !== '"') {
    scanner.at += scanner.text[scanner.at] === '\\' ? 2 : 1;
  }
  scanner.at += 1;
  return JSON.parse(scanner.text.slice(start, scanner.at)) as string;
};

type Report = (path: string) => void;

const readMembers = (scanner: Scanner, path: string, report: Report): void => {
  const seen = new Set<string>();
  skipSpace(scanner);
  while (scanner.text[scanner.at] === '"') {
    const key = readString(scanner);
    const at = path === '' ? key : `${path}.${key}`;
    if (seen.has(key)) report(at);
    seen.add(key);
    skipSpace(scanner);
    scanner.at += 1;
    readValue(scanner, at, report);
    skipSpace(scanner);
    if (scanner.text[scanner.at] === ',') scanner.at += 1;
    skipSpace(scanner);
  }
  scanner.at += 1;
};

const readItems = (scanner: Scanner, path: string, report: Report): void => {
  skipSpace(scanner);
  for (let index = 0; scanner.at < scanner.text.length && scanner.text[scanner.at] !== ']'; index += 1) {
    readValue(scanner, `${path}[${index}]`, report);
    skipSpace(scanner);
    if (scanner.text[scanner.at] === ',') scanner.at += 1;
    skipSpace(scanner);
  }
  scanner.at += 1;
};

const readValue = (scanner: Scanner, path: string, report: Report): void => {
  skipSpace(scanner);
  const first = scanner.text[scanner.at];
  if (first === '"') readString(scanner);
  else if (first === '{' || first === '[') {
    scanner.at += 1;
    if (first === '{') readMembers(scanner, path, report);
    else readItems(scanner, path, report);
  } else while (scanner.at < scanner.text.length && !/[,\]}\s]/.test(scanner.text[scanner.at] ?? '')) scanner.at += 1;
};

/** Paths of the duplicate fields, in the order of the text, which must be valid JSON. */
export const findDuplicateFields = (text: string): readonly string[] => {
  const found: string[] = [];
  readValue({ text, at: 0 }, '', (path) => found.push(path));
  return found;
};
