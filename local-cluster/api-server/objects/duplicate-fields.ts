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
