// Strings and URLs in CEL beyond the language library: charAt, replace, format, find, url. Registered by
// cel-values.ts.

import type { Environment } from '@marcbachmann/cel-js';
import { compileGoRegExp } from './go-regexp.ts';
import { goNumber } from './json.ts';

const charAt = (text: string, index: bigint): string => {
  const runes = Array.from(text);
  if (index < 0n || index > BigInt(runes.length)) throw new Error(`index out of range: ${index}`);
  return runes[Number(index)] ?? '';
};

const replace = (text: string, from: string, to: string, limit = -1n): string => {
  if (limit < 0n) return text.replaceAll(from, () => to);
  let [left, result, rest] = [limit, '', text];
  for (let at = rest.indexOf(from); at !== -1 && left > 0n; at = rest.indexOf(from)) {
    result += rest.slice(0, at) + to;
    rest = rest.slice(at + from.length);
    left -= 1n;
  }
  return result + rest;
};

const expression = (pattern: string): RegExp => {
  const compiled = compileGoRegExp(pattern);
  if (compiled === undefined) throw new Error(`Illegal regex: error parsing regexp: ${pattern}`);
  return compiled;
};

const findAll = (text: string, pattern: string, limit = -1n): string[] => {
  const { source, flags } = expression(pattern);
  const found = Array.from(text.matchAll(new RegExp(source, `${flags}g`)), ([match]) => match);
  return limit < 0n ? found : found.slice(0, Number(limit));
};

const show = (value: unknown): string => {
  if (typeof value === 'number') return goNumber(value);
  if (Array.isArray(value)) return `[${value.map(show).join(', ')}]`;
  return value instanceof Date ? value.toISOString().replace('.000Z', 'Z') : String(value);
};

const scientific = (value: number, digits: number): string =>
  value.toExponential(digits).replace(/e([+-])(\d)$/, 'e$10$2');

const verbs: Readonly<Record<string, (value: unknown, digits: number | undefined) => string>> = {
  s: show,
  d: (value) => String(value),
  f: (value, digits = 6) => Number(value).toFixed(digits),
  e: (value, digits = 6) => scientific(Number(value), digits),
  b: (value) => (typeof value === 'bigint' ? value.toString(2) : value === true ? '1' : '0'),
  o: (value) => BigInt(value as bigint).toString(8),
  x: (value) => (typeof value === 'string' ? Buffer.from(value).toString('hex') : BigInt(value as bigint).toString(16)),
};

/** Go-like formatting: %s %d %f %e %b %o %x %X and %%. */
const format = (text: string, values: readonly unknown[]): string => {
  let next = 0;
  return text.replaceAll(/%(?:\.(\d+))?([a-zA-Z%])/g, (_, digits: string | undefined, verb: string) => {
    if (verb === '%') return '%';
    const print = verbs[verb.toLowerCase()];
    if (print === undefined) throw new Error(`unrecognized formatting clause "${verb}"`);
    if (next >= values.length) throw new Error(`index ${next} out of range`);
    const shown = print(values[next++], digits === undefined ? undefined : Number(digits));
    return verb === 'X' ? shown.toUpperCase() : shown;
  });
};

const toUrl = (text: string): URL => {
  const url = text.startsWith('/') ? URL.parse(text, 'path://') : URL.parse(text);
  if (url === null)
    throw new Error(`URL parse error during conversion from string: parse "${text}": invalid URI for request`);
  return url;
};

const hostOf = (url: URL): string => (url.protocol === 'path:' ? '' : url.host);

const queryOf = (url: URL): Map<string, string[]> => {
  const query = new Map<string, string[]>();
  for (const [name, value] of url.searchParams) query.set(name, [...(query.get(name) ?? []), value]);
  return query;
};

export const registerText = (environment: Environment): Environment =>
  environment
    .registerFunction('string.charAt(int): string', charAt)
    .registerFunction('string.replace(string, string): string', replace)
    .registerFunction('string.replace(string, string, int): string', replace)
    .registerFunction('string.format(list): string', format)
    .registerFunction('string.reverse(): string', (text: string) => Array.from(text).toReversed().join(''))
    .registerFunction(
      'string.find(string): string',
      (text: string, pattern: string) => expression(pattern).exec(text)?.[0] ?? '',
    )
    .registerFunction('string.findAll(string): list<string>', findAll)
    .registerFunction('string.findAll(string, int): list<string>', findAll)
    .registerType('URL', URL)
    .registerFunction('url(string): URL', toUrl)
    .registerFunction('isURL(string): bool', (text: string) => text.startsWith('/') || URL.canParse(text))
    .registerFunction('URL.getScheme(): string', (url: URL) =>
      url.protocol === 'path:' ? '' : url.protocol.slice(0, -1),
    )
    .registerFunction('URL.getHost(): string', hostOf)
    .registerFunction('URL.getHostname(): string', (url: URL) => url.hostname.replaceAll(/[[\]]/g, ''))
    .registerFunction('URL.getPort(): string', (url: URL) => url.port)
    .registerFunction('URL.getEscapedPath(): string', (url: URL) => url.pathname)
    .registerFunction('URL.getQuery(): map<string, list<string>>', queryOf);
