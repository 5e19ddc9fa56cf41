// `bullion logs <name> --functions`: what the functions logged about an object and its children, from their pods or from a file.
import { serverMessageOf } from '#shared/clients/kube/wire.ts';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { type Call, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { Found } from '#shared/catalogue/image.ts';
import { childrenOf, readAll } from '#shared/catalogue/objects.ts';
import { Denied, InvalidInput, isNotFound, messageOf, NotFound } from '#shared/runtime/errors.ts';

/** Containers beside a function's own: Knative's, and those of meshes. */
const besides = ['queue-proxy', 'istio-proxy', 'linkerd-proxy'];

interface Line {
  readonly time: string;
  readonly text: string;
}

/** The line if it is about one of the names, or about something that is named after the UID. */
const lineAbout = (names: ReadonlySet<string>, uid: string, text: string): Line | undefined => {
  if (!text.startsWith('{')) return undefined;
  try {
    const { time, object, child } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (typeof time !== 'string' || typeof object !== 'string') return undefined;
    const isAbout = names.has(object.slice(object.indexOf(' ') + 1)) || `${object} ${String(child)}`.includes(uid);
    return isAbout ? { time, text } : undefined;
  } catch {
    return undefined;
  }
};

async function* linesOfPods({ kube, terminal, signal }: Call): AsyncGenerator<string> {
  const read = await readAll(kube, pods, { namespace: systemNamespace });
  if (read.is === 'denied')
    throw new Denied(`${read.message}: logs of functions are for administrators of ${systemNamespace}`);
  const all: readonly Pod[] = read.is === 'read' ? read.items : [];
  if (all.length === 0)
    throw new NotFound(
      `no pod runs in ${systemNamespace}: functions that were idle have ended, and a local cluster logs to the file that npm start prints. --from reads a file`,
    );
  const containers = all.flatMap(({ metadata, spec }) => spec.containers.map(({ name }) => ({ metadata, name })));
  for (const { metadata, name } of containers.filter((container) => !besides.includes(container.name)))
    try {
      yield* kube.logs(metadata, { container: name, signal });
    } catch (error) {
      if (!(error instanceof InvalidInput) && !isNotFound(error)) throw error;
      terminal.err(`${metadata.name} has no log: ${serverMessageOf(error)}\n`);
    }
}

async function* linesOfFile(path: string): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  } catch (error) {
    throw new InvalidInput(`--from: ${messageOf(error)}`, [], { cause: error });
  }
}

export interface FunctionsLog {
  /** How a line is printed. */
  readonly toText: (line: string) => string;
  /** Only the last lines. */
  readonly most: number | undefined;
}

export const printFunctionsLog = async (
  call: Call,
  found: Found,
  { toText, most }: FunctionsLog,
): Promise<ExitCode> => {
  const { namespace = '', name, uid = '' } = found.image.metadata;
  const children = await childrenOf(call.kube, found);
  const names = new Set([
    `${namespace}/${name}`,
    ...children.map(
      ({ metadata }) => (metadata.namespace === undefined ? '' : `${metadata.namespace}/`) + metadata.name,
    ),
  ]);
  const file = textOf(call.values, 'from');
  const about: Line[] = [];
  for await (const text of file === undefined ? linesOfPods(call) : linesOfFile(file)) {
    const line = lineAbout(names, uid, text);
    if (line !== undefined) about.push(line);
  }
  const inOrder = about.toSorted((a, b) => a.time.localeCompare(b.time));
  for (const { text } of most === undefined ? inOrder : inOrder.slice(-most || inOrder.length))
    call.terminal.out(`${toText(text)}\n`);
  if (about.length > 0) return exitCodes.done;
  call.terminal.err(
    `No function that still runs has logged anything about ${name}: logs of pods that have ended are in the log store of the cluster.\n`,
  );
  return exitCodes.notFound;
};
