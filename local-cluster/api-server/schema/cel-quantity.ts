// Resource quantities in CEL: quantity("1.5Gi"), isQuantity, compareTo, add, sub. Registered by cel-library.ts.

import type { Environment } from '@marcbachmann/cel-js';

/** A quantity as a number of nano units, the finest precision of Kubernetes. */
export class Quantity {
  readonly nano: bigint;

  constructor(nano: bigint) {
    this.nano = nano;
  }
}

const decimal: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binary: Readonly<Record<string, number>> = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };

const pattern = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/;

/** Rounds up, away from zero, as Kubernetes does with more precise values. */
const divideUp = (value: bigint, divisor: bigint): bigint => (value + divisor - 1n) / divisor;

const scale = (value: bigint, power: number): bigint =>
  power >= 0 ? value * 10n ** BigInt(power) : divideUp(value, 10n ** BigInt(-power));

/** Parses a quantity; undefined for invalid text. */
export const parseQuantity = (text: string): Quantity | undefined => {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, sign = '', digits = '', suffix = '', exponent] = match;
  const [whole = '', fraction = ''] = digits.split('.');
  const mantissa = BigInt(`${whole}${fraction}` || '0');
  const power = 9 - fraction.length + (exponent === undefined ? (decimal[suffix] ?? 0) : Number(exponent));
  const nano = scale(mantissa * 1024n ** BigInt(binary[suffix] ?? 0), power);
  return new Quantity(sign === '-' ? -nano : nano);
};

const unit = 1_000_000_000n;

const compare = (a: Quantity, b: Quantity): bigint => (a.nano < b.nano ? -1n : a.nano > b.nano ? 1n : 0n);

const toQuantity = (text: string): Quantity => {
  const quantity = parseQuantity(text);
  if (quantity !== undefined) return quantity;
  throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
};

const toInteger = (quantity: Quantity): bigint => {
  if (quantity.nano % unit === 0n) return quantity.nano / unit;
  throw new Error('cannot convert value to integer');
};

export const registerQuantity = (environment: Environment): Environment =>
  environment
    .registerType('Quantity', Quantity)
    .registerFunction('quantity(string): Quantity', toQuantity)
    .registerFunction('isQuantity(string): bool', (text: string) => parseQuantity(text) !== undefined)
    .registerFunction('Quantity.sign(): int', (q: Quantity) => compare(q, new Quantity(0n)))
    .registerFunction('Quantity.isInteger(): bool', (q: Quantity) => q.nano % unit === 0n)
    .registerFunction('Quantity.asInteger(): int', toInteger)
    .registerFunction('Quantity.asApproximateFloat(): double', (q: Quantity) => Number(q.nano) / 1e9)
    .registerFunction('Quantity.compareTo(Quantity): int', compare)
    .registerFunction('Quantity.isLessThan(Quantity): bool', (a: Quantity, b: Quantity) => a.nano < b.nano)
    .registerFunction('Quantity.isGreaterThan(Quantity): bool', (a: Quantity, b: Quantity) => a.nano > b.nano)
    .registerFunction('Quantity.add(Quantity): Quantity', (a: Quantity, b: Quantity) => new Quantity(a.nano + b.nano))
    .registerFunction('Quantity.add(int): Quantity', (a: Quantity, b: bigint) => new Quantity(a.nano + b * unit))
    .registerFunction('Quantity.sub(Quantity): Quantity', (a: Quantity, b: Quantity) => new Quantity(a.nano - b.nano))
    .registerFunction('Quantity.sub(int): Quantity', (a: Quantity, b: bigint) => new Quantity(a.nano - b * unit))
    .registerOperator('Quantity == Quantity', (a: Quantity, b: Quantity) => a.nano === b.nano);
