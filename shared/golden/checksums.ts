// Files of checksums as vendors publish them: SHA256SUMS and the like in GNU and BSD form, and sidecars with one digest. Pure; read by polls, and
// by who looks at their signatures.
type FoundChecksum = { readonly digest: string } | { readonly problem: string };

interface Line {
  readonly hex: string;
  /** Absent in a sidecar that holds a digest alone. */
  readonly name?: string | undefined;
}

const algorithms: Readonly<Record<number, string>> = { 64: 'sha256', 128: 'sha512' };

/** `\` before a GNU line says that its name is escaped. */
const unescapeName = (name: string): string =>
  name.replace(/\\([\\nr])/g, (_, char: string) => ({ n: '\n', r: '\r' })[char] ?? char);

const readLine = (line: string): Line | undefined => {
  const bsd = /^SHA(?:2-)?(?:256|512)\s?\((.+)\)\s?=\s?([0-9a-f]+)$/i.exec(line);
  if (bsd !== null) return { name: bsd[1], hex: bsd[2] ?? '' };
  const gnu = /^(\\?)([0-9a-f]{64,128})(?:\s[ *]?(.+))?$/i.exec(line);
  if (gnu === null) return undefined;
  const name = gnu[3]?.trim();
  return { name: gnu[1] === '\\' && name !== undefined ? unescapeName(name) : name, hex: gnu[2] ?? '' };
};

const baseName = (path: string): string => path.split('/').at(-1) ?? path;

const readLines = (text: string): readonly Line[] =>
  text
    .split(/\r?\n/)
    .map((line) => readLine(line.trim()))
    .filter((line): line is Line => line !== undefined && algorithms[line.hex.length] !== undefined);

const digestOf = ({ hex }: Line): string => `${algorithms[hex.length]}:${hex.toLowerCase()}`;

const isOf = ({ name }: Line, fileName: string): boolean => name !== undefined && baseName(name) === fileName;

/** Every digest that stands beside this name, each once. */
export const digestsNamed = (text: string, fileName: string): readonly string[] => [
  ...new Set(readLines(text).flatMap((line) => (isOf(line, fileName) ? [digestOf(line)] : []))),
];

/** The digest of `fileName` as `sha256:<hex>` or `sha512:<hex>`. A file that holds one digest without a name is about the only file there is. */
export const findChecksum = (text: string, fileName: string): FoundChecksum => {
  const lines = readLines(text);
  if (lines.length === 0) return { problem: 'holds no sha256 or sha512 digest' };
  const [sole] = lines;
  const named = lines.filter((line) => isOf(line, fileName));
  const matching = named.length === 0 && lines.length === 1 && sole?.name === undefined ? lines : named;
  const digests = new Set(matching.map(digestOf));
  if (digests.size === 0) return { problem: `has no line for ${fileName}` };
  const [first = '', ...others] = [...digests].sort();
  if (others.some((digest) => digest.startsWith(first.slice(0, 7))))
    return { problem: `has different digests for ${fileName}` };
  return { digest: first };
};
