// `npm run texts [-- <path>...]`: every sentence that the product's code may show to a person, by file and line, to be read as a whole. Tests, and texts of
// a single word (names, keys), are left out.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Visitor, parseSync } from 'oxc-parser';

interface Text {
  readonly line: number;
  readonly text: string;
}

/** Two words next to each other: paths, types and SQL keywords alone are not sentences. */
const isSentence = (text: string): boolean => /[a-z]{2,}[,:;]? +(\$\{|[a-z]{1,})/.test(text);

/** With each expression as `${…}`. */
const textOf = (quasis: readonly { readonly value: { readonly raw: string } }[]): string =>
  quasis.map(({ value }) => value.raw).join('${…}');

const textsOf = (path: string): readonly Text[] => {
  const source = readFileSync(path, 'utf8');
  const found: Text[] = [];
  const add = (start: number, text: string): void => {
    if (isSentence(text))
      found.push({ line: source.slice(0, start).split('\n').length, text: text.replaceAll(/\s+/g, ' ') });
  };
  new Visitor({
    Literal: ({ start, value }) => typeof value === 'string' && add(start, value),
    TemplateLiteral: ({ start, quasis }) => add(start, textOf(quasis)),
    JSXText: ({ start, value }) => add(start, value),
  }).visit(parseSync(path, source).program);
  return found;
};

const root = join(import.meta.dirname, '../..');
const folders = ['cli', 'events', 'functions', 'infra', 'shared'];
const asked = process.argv.slice(2);
const listed = execFileSync('git', ['ls-files', '--', ...(asked.length > 0 ? asked : folders)], {
  cwd: root,
  encoding: 'utf8',
});
for (const path of listed.split('\n').filter((name) => /(?<!\.test)\.tsx?$/.test(name))) {
  const texts = textsOf(join(root, path));
  if (texts.length > 0) console.log(`${path}\n${texts.map(({ line, text }) => `  ${line}: ${text}`).join('\n')}`);
}
