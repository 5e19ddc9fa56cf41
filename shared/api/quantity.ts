// Kubernetes quantities as whole bytes. Called by dialects, backends and admission.

const factors: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
  m: 1e-3,
};

const quantityForm = /^\+?(\d+(?:\.\d*)?|\.\d+)(?:(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?\d+))?$/;

/** Bytes, rounded up to an integer; `undefined` for an invalid quantity of storage (negative, not a number, too large). */
export const parseQuantity = (value: string | number | undefined): number | undefined => {
  const match = quantityForm.exec(String(value ?? '').trim());
  if (match === null) return undefined;
  const [, digits = '', suffix = '', exponent] = match;
  const factor = exponent === undefined ? (factors[suffix] ?? Number.NaN) : 10 ** Number(exponent);
  const bytes = Math.ceil(Number(digits) * factor);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
};

const units = ['Ti', 'Gi', 'Mi', 'Ki'] as const;

/** The shortest exact form: `3Gi`, `1025Mi`, or a bare number of bytes. */
export const formatQuantity = (bytes: number): string => {
  const unit = bytes === 0 ? undefined : units.find((name) => bytes % (factors[name] ?? 1) === 0);
  return unit === undefined ? String(bytes) : `${bytes / (factors[unit] ?? 1)}${unit}`;
};

/** For messages: `1.9 GiB`. */
export const formatBytes = (bytes: number): string => {
  const unit = units.find((name) => bytes >= (factors[name] ?? 1));
  return unit === undefined ? `${bytes} B` : `${(bytes / (factors[unit] ?? 1)).toFixed(1)} ${unit}B`;
};
