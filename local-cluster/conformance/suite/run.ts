// Runs cases with a server, a few at a time. Called by main.ts and by the vitest files.
import { createContext } from '#local-cluster/conformance/suite/context.ts';
import type { Case, ConformanceServer, Topic } from '#local-cluster/conformance/suite/case.ts';
import { createHttp } from '#local-cluster/conformance/suite/http.ts';
import { startWebhookServer } from '#local-cluster/conformance/suite/webhook-server.ts';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonValue } from '#local-cluster/conformance/suite/json.ts';

export interface CaseResult {
  readonly topic: string;
  readonly name: string;
  readonly ms: number;
  /** The error; unset when it passed. */
  readonly error?: Error;
}

export interface Runner {
  readonly run: (topic: Topic, name: string) => Promise<CaseResult>;
  /** Writes the recordings, when recording. */
  readonly close: () => Promise<void>;
}

/** Milliseconds after which a case has failed. */
const caseTimeoutMs = 110_000;

export const createRunner = async (server: ConformanceServer, records = false): Promise<Runner> => {
  const http = createHttp(server);
  const webhooks = await startWebhookServer();
  const recordings = new Map<string, TopicRecording>();
  const recordingOf = (topic: string): TopicRecording => {
    const known = recordings.get(topic) ?? readRecording(topic);
    recordings.set(topic, known);
    return known;
  };
  const run = async ({ topic, cases, alone }: Topic, name: string): Promise<CaseResult> => {
    const started = Date.now();
    const body = cases[name] ?? alone?.[name];
    if (body === undefined) throw new Error(`topic ${topic} has no case "${name}"`);
    const recording = records ? {} : (recordingOf(topic)[name] ?? {});
    const { context, finish } = createContext({ server, http, webhooks, recording, records });
    const error = await attempt(body, context);
    await finish();
    if (records && Object.keys(recording).length > 0) recordingOf(topic)[name] = recording;
    return { topic, name, ms: Date.now() - started, ...(error === undefined ? {} : { error }) };
  };
  const close = async (): Promise<void> => {
    if (records) for (const [topic, recording] of recordings) writeRecording(topic, recording);
    await webhooks.close();
    await http.close();
  };
  return { run, close };
};

const attempt = async (body: Case, context: Parameters<Case>[0]): Promise<Error | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${caseTimeoutMs / 1000} s`)), caseTimeoutMs);
  });
  try {
    await Promise.race([body(context), timeout]);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    clearTimeout(timer);
  }
};

/** Every case of the topics, `width` at a time, in order of definition; calls back after each. */
export const runAll = async (
  runner: Runner,
  work: readonly (readonly [Topic, string])[],
  width: number,
  onResult: (result: CaseResult) => void,
): Promise<readonly CaseResult[]> => {
  const results: CaseResult[] = [];
  const queue = work.filter((item) => !isAlone(item));
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const result = await runner.run(next[0], next[1]);
      results.push(result);
      onResult(result);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  queue.push(...work.filter(isAlone));
  await worker();
  return results;
};

const isAlone = ([topic, name]: readonly [Topic, string]): boolean => topic.alone?.[name] !== undefined;

/** The names of all cases of a topic. */
export const caseNames = ({ cases, alone = {} }: Topic): readonly string[] => [
  ...Object.keys(cases),
  ...Object.keys(alone),
];

/** Recordings of the real server, one JSON file per topic: case -> label -> value. */
const folder = join(import.meta.dirname, '..', 'golden');

type TopicRecording = Record<string, Record<string, JsonValue>>;

const fileOf = (topic: string): string => join(folder, `${topic}.json`);

const readRecording = (topic: string): TopicRecording =>
  existsSync(fileOf(topic)) ? (JSON.parse(readFileSync(fileOf(topic), 'utf8')) as TopicRecording) : {};

/** Sorted by case, so that a recording differs only where the server does. Run the formatter on it afterwards. */
const writeRecording = (topic: string, recording: TopicRecording): void => {
  const sorted = Object.fromEntries(Object.entries(recording).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(fileOf(topic), `${JSON.stringify(sorted, undefined, 2)}\n`);
};
