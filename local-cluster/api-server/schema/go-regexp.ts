// Compiles RE2 patterns of Go to JavaScript patterns, as far as schemas and CEL rules use them.

const cache = new Map<string, RegExp | undefined>();

const posix: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

/** Rewrites syntax that differs in RE2: named groups, \A \z \Q…\E, POSIX classes, \x{…}. */
const toSource = (pattern: string): string =>
  pattern
    .replaceAll(/\\Q([\s\S]*?)(?:\\E|$)/g, (_, literal: string) =>
      literal.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`),
    )
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\[:(\w+):\]/g, (all, name: string) => posix[name] ?? all)
    .replaceAll(/(?<!\\)((?:\\\\)*)\\A/g, '$1^')
    .replaceAll(/(?<!\\)((?:\\\\)*)\\z/g, '$1(?![\\s\\S])')
    .replaceAll(/\\x\{([0-9A-Fa-f]+)\}/g, String.raw`\u{$1}`);

/** RE2 has neither look-around nor back references: those that JavaScript would accept are rejected as in Go. */
const isBeyondRe2 = (pattern: string): boolean =>
  /\(\?(?:=|!|<=|<!)/.test(pattern) || /(?<!\\)(?:\\\\)*\\[1-9]/.test(pattern);

const leadingFlags = /^\(\?([imsU]+)\)/;

const build = (pattern: string): RegExp | undefined => {
  if (isBeyondRe2(pattern)) return undefined;
  const flags = leadingFlags.exec(pattern)?.[1] ?? '';
  const source = toSource(pattern.replace(leadingFlags, ''));
  const chosen = flags.replaceAll(/[^ims]/g, '');
  for (const mode of ['u', '']) {
    try {
      return new RegExp(source, `${chosen}${mode}`);
    } catch {
      // Unicode mode rejects harmless escapes such as \- or \_ that RE2 accepts; plain mode then decides.
    }
  }
  return undefined;
};

/** The compiled pattern, or undefined when it is not valid in Go. */
export const compileGoRegExp = (pattern: string): RegExp | undefined => {
  if (!cache.has(pattern)) {
    if (cache.size > 2000) cache.clear();
    cache.set(pattern, build(pattern));
  }
  return cache.get(pattern);
};

/** The error of Go for a pattern that does not compile. */
export const goRegExpFault = (pattern: string): string => {
  const perl = /\(\?(?:=|!|<=|<!)/.exec(pattern);
  if (perl !== null) return `error parsing regexp: invalid or unsupported Perl syntax: \`${perl[0].slice(0, 3)}\``;
  const repeat = /\{(\d+),(\d+)\}/.exec(pattern);
  if (repeat !== null && Number(repeat[1]) > Number(repeat[2]))
    return `error parsing regexp: invalid repeat count: \`${repeat[0]}\``;
  const plain = pattern.replaceAll(/\\[\s\S]/g, '');
  const opened = plain.split('(').length - plain.split(')').length;
  if (opened > 0) return `error parsing regexp: missing closing ): \`${pattern}\``;
  if (opened < 0) return `error parsing regexp: unexpected ): \`${pattern}\``;
  return `error parsing regexp: \`${pattern}\``;
};
