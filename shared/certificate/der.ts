// The few ASN.1 values that a certificate is made of, in DER (X.690). Called by issue.ts.

const lengthOf = (size: number): Buffer => {
  if (size < 0x80) return Buffer.from([size]);
  const bytes = Buffer.from(size.toString(16).padStart(size > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
};

/** Up to 65535 bytes. */
const value = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
};

export const sequence = (...parts: readonly Uint8Array[]): Buffer => value(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]): Buffer => value(0x31, ...parts);
export const octets = (content: Uint8Array): Buffer => value(0x04, content);
/** Whole bytes. */
export const bits = (content: Uint8Array, unused = 0): Buffer => value(0x03, Buffer.from([unused]), content);
export const utf8 = (text: string): Buffer => value(0x0c, Buffer.from(text));
export const yes = value(0x01, Buffer.from([0xff]));

/** A number of `bytes`, which is above 0 whatever its first bit says. */
export const positive = (bytes: Uint8Array): Buffer =>
  value(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);

export const objectId = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return value(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
};

const base128 = (number: number): readonly number[] => {
  const digits = [number & 0x7f];
  for (let left = number >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f));
  return digits;
};

/** RFC 5280 wants two digits of the year until 2049. */
export const time = (at: Date): Buffer => {
  const digits = at.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return at.getUTCFullYear() < 2050 ? value(0x17, Buffer.from(digits.slice(2))) : value(0x18, Buffer.from(digits));
};

/** `[number]` around what is inside. */
export const explicit = (number: number, ...parts: readonly Uint8Array[]): Buffer => value(0xa0 | number, ...parts);
/** `[number]` in place of the type's own tag. */
export const implicit = (number: number, content: Uint8Array): Buffer => value(0x80 | number, content);
