// The validation of names, labels and annotation keys, with the messages of Kubernetes.

/** Returns the errors of a name, none when it is valid. `prefix`: it is a generateName, which is followed by a suffix. */
export type NameRule = (name: string, prefix: boolean) => readonly string[];

const label1123 = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain1123 = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;

const messages = {
  label:
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
  subdomain:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  qualified:
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
  value:
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
} as const;

const tooLong = (limit: number, unit: 'bytes' | 'characters' = 'characters'): string =>
  `must be no more than ${limit} ${unit}`;

/** A prefix may end with a dash, since a suffix follows. */
const masked = (name: string, prefix: boolean): string =>
  prefix && name.endsWith('-') ? `${name.slice(0, -1)}a` : name;

const ruleOf =
  (pattern: RegExp, limit: number, message: string): NameRule =>
  (name, prefix) => [
    ...(name.length > limit ? [tooLong(limit)] : []),
    ...(pattern.test(masked(name, prefix)) ? [] : [message]),
  ];

const plainLabel: NameRule = ruleOf(label1123, 63, messages.label);

export const dnsLabel: NameRule = (name, prefix) =>
  name.includes('.') ? ['must not contain dots'] : plainLabel(name, prefix);
export const dnsSubdomain: NameRule = ruleOf(subdomain1123, 253, messages.subdomain);

/** Names that only have to be valid in a URL path: roles and their bindings. */
export const pathSegment: NameRule = (name) => {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%']
    .filter((character) => name.includes(character))
    .map((character) => `may not contain '${character}'`);
};

/** `what` is the name of the value in messages. */
export const qualifiedName = (text: string, what = 'qualified name'): readonly string[] => {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2) {
    return [
      `a ${what} must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (second === undefined) return namePart(first);
  const prefix =
    first === '' ? ['prefix part must be non-empty'] : dnsSubdomain(first, false).map((m) => `prefix part ${m}`);
  return [...prefix, ...namePart(second)];
};

const namePart = (name: string): string[] => [
  ...(name === '' ? ['name part must be non-empty'] : []),
  ...(name.length > 63 ? ['name part must be no more than 63 bytes'] : []),
  ...(qualifiedPart.test(name) ? [] : [messages.qualified]),
];

export const labelValueFaults = (value: string): readonly string[] => [
  ...(value.length > 63 ? [tooLong(63, 'bytes')] : []),
  ...(labelValue.test(value) ? [] : [messages.value]),
];

/** No vowels and no characters that look like others. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
const maxGenerated = 63 - 5;

/** A probably unused name from `generateName`; `random` returns numbers in [0, 1). */
export const generateName = (base: string, random: () => number): string => {
  const suffix = Array.from({ length: 5 }, () => alphabet[Math.floor(random() * alphabet.length)]).join('');
  return base.slice(0, maxGenerated) + suffix;
};
