// Descriptions and required fields of the built-in kinds, read once from the declarations that the Kubernetes client
// ships beside its models. Called by builtin.ts.

import { readFileSync } from 'node:fs';

export interface ModelText {
  readonly description: string;
  /** By the field's name in the model. */
  readonly fields: ReadonlyMap<string, { readonly description: string; readonly required: boolean }>;
}

const unescape = (text: string): string => text.trim().replaceAll(/\\(['"])/g, '$1');

const fieldPattern = /(?:\/\*\*\n\s*\* (?<text>.*)\n\s*\*\/\n\s*)?'(?<name>[^']+)'(?<optional>\?)?: /g;

const classPattern = /\/\*\*\n\* (?<text>.*)\n\*\/\nexport declare class/;

const parse = (source: string): ModelText => ({
  description: unescape(classPattern.exec(source)?.groups?.['text'] ?? ''),
  fields: new Map(
    Array.from(source.matchAll(fieldPattern), ({ groups = {} }) => [
      groups['name'] ?? '',
      { description: unescape(groups['text'] ?? ''), required: groups['optional'] === undefined },
    ]),
  ),
});

const models = new URL('dist/gen/models/', new URL('../', import.meta.resolve('@kubernetes/client-node')));

/** The texts of one model, such as `V1PodSpec`. Throws when the client has no such model. */
export const readModelText = (model: string): ModelText =>
  parse(readFileSync(new URL(`${model}.d.ts`, models), 'utf8'));
