// Recordings of the real server, one JSON file per topic: case -> label -> value.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonValue } from '#local-cluster/conformance/suite/json.ts';

const folder = join(import.meta.dirname, '..', 'golden');

export type TopicRecording = Record<string, Record<string, JsonValue>>;

const fileOf = (topic: string): string => join(folder, `${topic}.json`);

export const readRecording = (topic: string): TopicRecording =>
  existsSync(fileOf(topic)) ? (JSON.parse(readFileSync(fileOf(topic), 'utf8')) as TopicRecording) : {};

/** Sorted by case, so that a recording differs only where the server does. Run the formatter on it afterwards. */
export const writeRecording = (topic: string, recording: TopicRecording): void => {
  const sorted = Object.fromEntries(Object.entries(recording).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(fileOf(topic), `${JSON.stringify(sorted, undefined, 2)}\n`);
};
