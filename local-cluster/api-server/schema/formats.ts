// The string formats that an API server enforces in custom resources; it ignores any other format.

import { isIP, isIPv4, isIPv6 } from 'node:net';

const uuid = (version: string, variant: string): RegExp =>
  new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i');

const digitsOf = (text: string): string => text.replaceAll(/[\s-]/g, '');

const isIsbn10 = (text: string): boolean => {
  const digits = digitsOf(text);
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const sum = Array.from(digits, (digit, index) => (10 - index) * (digit === 'X' ? 10 : Number(digit)));
  return sum.reduce((total, part) => total + part, 0) % 11 === 0;
};

const isIsbn13 = (text: string): boolean => {
  const digits = digitsOf(text);
  if (!/^\d{13}$/.test(digits)) return false;
  return (
    Array.from(digits, (digit, index) => Number(digit) * (index % 2 === 0 ? 1 : 3)).reduce((a, b) => a + b, 0) % 10 ===
    0
  );
};

const creditCard =
  /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/;

const passesLuhn = (digits: string): boolean =>
  Array.from(digits)
    .toReversed()
    .map((digit, index) => Number(digit) * (index % 2 === 0 ? 1 : 2))
    .reduce((sum, part) => sum + (part > 9 ? part - 9 : part), 0) %
    10 ===
  0;

const isCreditCard = (text: string): boolean => {
  const digits = text.replaceAll(/\D/g, '');
  return creditCard.test(digits) && passesLuhn(digits);
};

const isDate = (text: string): boolean => {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
};

const isDateTime = (text: string): boolean => {
  const [date = '', time = ''] = text.toLowerCase().split('t');
  const match = /^(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})$/.exec(time);
  if (!isDate(date) || match === null) return false;
  return (match[1] ?? '') <= '23' && (match[2] ?? '') <= '59' && (match[3] ?? '') <= '59';
};

const goDuration = /^[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
const wordDuration = /\d+\s*(?:ns|us|µs|ms|s|m|h|d|w|nano|micro|milli|sec|min|hr|hour|day|wk|week)/i;

const hostnamePattern =
  /^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$/u;

/** One label with at most one inner dash, or several that end with letters only: more restrictive than RFC 1123, but as in the original. */
const isHostname = (text: string): boolean =>
  hostnamePattern.test(text) && text.length <= 255 && text.split('.').every((label) => label.length <= 63);

const isCidr = (text: string): boolean => {
  const [address = '', prefix = '', ...rest] = text.split('/');
  const family = isIP(address);
  return family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
};

/** A request URI: an absolute URL or an absolute path, as accepted by Go's url.ParseRequestURI. */
const isUri = (text: string): boolean => {
  if (/[\s\p{Cc}]/u.test(text) || /%(?![0-9a-fA-F]{2})/.test(text)) return false;
  return text.startsWith('/') || /^[a-zA-Z][a-zA-Z0-9+.-]*:./.test(text);
};

const color = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';

const patterns: Readonly<Record<string, RegExp>> = {
  bsonobjectid: /^[0-9a-fA-F]{24}$/,
  mac: /^(?:[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5,19}|(?:[0-9a-fA-F]{4}\.){2,9}[0-9a-fA-F]{4})$/,
  uuid: uuid('[0-9a-f]', '[0-9a-f]'),
  uuid3: uuid('3', '[0-9a-f]'),
  uuid4: uuid('4', '[89ab]'),
  uuid5: uuid('5', '[89ab]'),
  ssn: /^\d{3}[- ]?\d{2}[- ]?\d{4}$/,
  hexcolor: /^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/,
  rgbcolor: new RegExp(`^rgb\\(\\s*${color}\\s*,\\s*${color}\\s*,\\s*${color}\\s*\\)$`),
  email: /^(?:[^<>]*<)?[^\s@<>"(),:;[\]\\]+@[^\s@<>"(),:;\\]+>?$/,
  byte: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/,
};

const checks: Readonly<Record<string, (text: string) => boolean>> = {
  uri: isUri,
  hostname: isHostname,
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCidr,
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  creditcard: isCreditCard,
  password: () => true,
  date: isDate,
  datetime: isDateTime,
  duration: (text) => goDuration.test(text) || wordDuration.test(text),
  k8sshortname: (text) => text.length <= 63 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(text),
  k8slongname: (text) =>
    text.length <= 253 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/.test(text),
};

const numberFormats: Readonly<Record<string, readonly string[]>> = {
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
};

const isStringFormat = (name: string): boolean => Object.hasOwn(checks, name) || Object.hasOwn(patterns, name);

/** The format as enforced for this type; empty when it is ignored. Dashes in names are ignored. */
export const enforcedFormat = (types: readonly string[], format: string | undefined): string => {
  if (format === undefined || format === '' || types.length > 1) return '';
  const type = types[0] ?? 'string';
  if (type === 'string') return isStringFormat(format.replaceAll('-', '')) ? format : '';
  return numberFormats[type]?.includes(format) === true ? format : '';
};

/** Whether a string has a format; every string has an unknown format. */
export const matchesFormat = (format: string, text: string): boolean => {
  const name = format.replaceAll('-', '');
  return checks[name]?.(text) ?? patterns[name]?.test(text) ?? true;
};
