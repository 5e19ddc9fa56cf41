// The subset of XML that S3 uses: documents from plain data, and values of named elements in request bodies.

export type XmlValue = string | number | boolean | undefined | XmlElements | readonly XmlValue[];
export interface XmlElements {
  readonly [name: string]: XmlValue;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Carriage returns and other control characters would be changed by a parser. */
const escape = (text: string): string =>
  text.replaceAll(
    /[&<>"]|\p{Cc}/gu,
    (character) => entities[character] ?? `&#x${character.charCodeAt(0).toString(16)};`,
  );

const element = (name: string, value: XmlValue): string => {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.map((item: XmlValue) => element(name, item)).join('');
  if (typeof value !== 'object') return `<${name}>${escape(String(value))}</${name}>`;
  const inner = Object.entries(value).map(([key, child]) => element(key, child as XmlValue));
  return `<${name}>${inner.join('')}</${name}>`;
};

/** A document; arrays repeat their element, `undefined` omits it. */
export const xml = (root: string, content: XmlElements): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${element(root, content).replace(
    `<${root}>`,
    root === 'Error' ? '<Error>' : `<${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`,
  )}`;

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const unescape = (text: string): string =>
  text.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return named[name ?? ''] ?? whole;
  });

/** Inner texts of every `<name>` of a body, in order, still escaped. */
export const elementsOf = (body: string, name: string): readonly string[] =>
  [...body.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, 'g'))].map((match) => match[1] ?? '');

/** Text of the first `<name>`. */
export const textOf = (body: string, name: string): string | undefined => {
  const [text] = elementsOf(body, name);
  return text === undefined ? undefined : unescape(text);
};
