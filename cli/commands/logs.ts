// `bullion logs <name>`: the logs of the pods that work for an object, oldest attempt first; with -f until the object is done.
import { serverMessageOf } from '#shared/clients/kube/wire.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { printFunctionsLog } from '#cli/commands/functions-log.ts';
import { type Pod, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Found, isOver } from '#shared/catalogue/image.ts';
import { childrenOf, findAny, listIfAny } from '#shared/catalogue/objects.ts';
import { toAge } from '#shared/runtime/age.ts';
import { InvalidInput, isNotFound } from '#shared/runtime/errors.ts';

/** Milliseconds between two looks for the next attempt. */
const pollMs = 1000;

/** Those that belong to one of `owners`: by Bullion's label, or by reference, as CDI's do. */
const ownedBy = <T extends KubeObject>(owners: ReadonlySet<string | undefined>, objects: readonly T[]): readonly T[] =>
  objects.filter(
    ({ metadata: { labels: marks = {}, ownerReferences = [] } }) =>
      owners.has(marks[labels.ownerUid] ?? '') || ownerReferences.some(({ uid }) => owners.has(uid)),
  );

/** What fills a claim works for it. */
const workOf = async ({ kube, namespace }: Call, found: Found): Promise<Found> => {
  const [owner] = found.image.metadata.ownerReferences ?? [];
  if (found.type !== persistentVolumeClaims || owner === undefined) return found;
  return findAny(kube, namespace, `${owner.kind}/${owner.name}`).catch(() => found);
};

const podsFor = async ({ kube }: Call, found: Found): Promise<readonly Pod[]> => {
  const { namespace, uid } = found.image.metadata;
  const children = await childrenOf(kube, found);
  const owners = new Set([uid, ...children.map(({ metadata }) => metadata.uid)]);
  const claims = await listIfAny(kube, persistentVolumeClaims, namespace);
  // CDI's claims own claims, which own pods.
  for (let known = 0; known < owners.size;) {
    known = owners.size;
    for (const { metadata } of ownedBy(owners, claims)) owners.add(metadata.uid);
  }
  const all = ownedBy(owners, await Array.fromAsync(kube.listAll(pods, { namespace })));
  const startOf = ({ metadata }: Pod): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return all.toSorted((a, b) => startOf(a).localeCompare(startOf(b)));
};

/** `15:05:50 info a message {"more":"fields"}` of a line of Bullion's; others as they are. */
const readable = (line: string): string => {
  if (!line.startsWith('{')) return line;
  try {
    const { time, level, message, ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (typeof time !== 'string' || typeof message !== 'string') return line;
    const more = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`;
    return `${time.slice(11, 19)} ${String(level).padEnd(5)} ${message}${more}`;
  } catch {
    return line;
  }
};

const stateOf = ({ status = {} }: Pod): string => {
  const [ended] = (status.containerStatuses ?? []).flatMap(({ state }) => state?.terminated ?? []);
  const exit = ended === undefined || ended.exitCode === 0 ? '' : ` with exit code ${ended.exitCode}`;
  return `${status.phase ?? 'Pending'}${status.reason === undefined ? exit : ` (${status.reason})`}`;
};

const hasFinished = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

const linesOf = ({ values }: Call): number | undefined => {
  const text = textOf(values, 'tail');
  if (text !== undefined && !/^\d+$/.test(text)) throw new InvalidInput(`--tail is a number of lines, not ${text}`);
  return text === undefined ? undefined : Number(text);
};

/** `heading` goes before the first line: a container that has not started has none. */
const printLines = async (
  { values, terminal }: Call,
  lines: AsyncIterable<string>,
  heading: string,
): Promise<boolean> => {
  let isFirst = true;
  for await (const line of lines) {
    if (isFirst) terminal.err(heading);
    isFirst = false;
    terminal.out(`${values['raw'] === true ? line : readable(line)}\n`);
  }
  return !isFirst;
};

/** False: its containers have not started, and it can be asked again. */
const printPod = async (call: Call, pod: Pod): Promise<boolean> => {
  const { kube, values, terminal, signal } = call;
  const options = { follow: values['follow'] === true, tailLines: linesOf(call), signal };
  const { name, creationTimestamp } = pod.metadata;
  let heading = `==> ${name}: ${stateOf(pod)}, ${toAge(creationTimestamp, terminal.now())} old <==\n`;
  for (const container of pod.spec.containers) {
    try {
      const lines = kube.logs(pod.metadata, { ...options, container: container.name });
      if (await printLines(call, lines, heading)) heading = '';
    } catch (error) {
      if (!(error instanceof InvalidInput) && !isNotFound(error)) throw error;
      const words = serverMessageOf(error);
      if (!options.follow) terminal.err(`${name} has no log: ${words}\n`);
      if (!hasFinished(pod)) return heading === '';
    }
  }
  return true;
};

/** Nothing more is written for it. */
const isDone = (found: Found, all: readonly Pod[]): boolean =>
  all.every(hasFinished) &&
  (found.type === persistentVolumeClaims ? found.image.status?.phase === 'Bound' : isOver(found));

const reportNone = ({ namespace, positionals: [wanted = ''], terminal }: Call): ExitCode => {
  terminal.err(
    `No pod works for ${wanted}, or its pods are gone: some are removed once their Job has ended, the others a day later. bullion why ${wanted} -n ${namespace} says what happened.\n`,
  );
  return exitCodes.notFound;
};

const followAll = async (call: Call, { type, image: { metadata } }: Found): Promise<ExitCode> => {
  const { kube, signal } = call;
  const { namespace, name } = metadata;
  const printed = new Set<string | undefined>();
  while (!signal.aborted) {
    const image = await kube.get(type, { namespace, name });
    if (image === undefined) return exitCodes.done;
    // Read behind the object: no attempt begins once that is done.
    const all = await podsFor(call, { type, image });
    for (const pod of all)
      if (!printed.has(pod.metadata.uid) && (await printPod(call, pod))) printed.add(pod.metadata.uid);
    if (isDone({ type, image }, all)) return printed.size > 0 ? exitCodes.done : reportNone(call);
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
  return exitCodes.interrupted;
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, positionals, values } = call;
  const found = await workOf(call, await findAny(kube, namespace, positionals[0] ?? ''));
  const isOfFunctions = values['functions'] === true || textOf(values, 'from') !== undefined;
  if (isOfFunctions && values['follow'] === true)
    throw new InvalidInput('--functions shows what was logged up to now: leave out --follow');
  if (isOfFunctions)
    return printFunctionsLog(call, found, {
      most: linesOf(call),
      toText: (line) => (values['raw'] === true ? line : readable(line)),
    });
  if (values['follow'] === true) return followAll(call, found);
  const all = await podsFor(call, found);
  for (const pod of all) {
    await printPod(call, pod);
  }
  return all.length > 0 ? exitCodes.done : reportNone(call);
};

export const logsCommand: ClusterCommand = {
  name: 'logs',
  arguments: '<name>',
  summary: 'Prints the logs of the pods behind an image or a volume, every attempt.',
  more: 'An image, or any other object that Bullion serves: <kind>/<name> where several have the name (datavolume/x, pvc/x). Failed attempts are included.\n\n  bullion logs jammy\n  bullion logs datavolume/root -f\n  bullion logs jammy --raw --tail 20\n  bullion logs jammy --functions',
  options: {
    follow: {
      type: 'boolean',
      short: 'f',
      help: 'follow, through all attempts, until the object is ready or has failed',
    },
    functions: {
      type: 'boolean',
      help: 'what the functions logged about it and its children, in place of the transfers',
    },
    from: { type: 'string', value: 'FILE', help: 'the same, from a file: the log of a local cluster, or a saved one' },
    tail: { type: 'string', value: 'LINES', help: 'only the last lines of each pod, or of the functions' },
    raw: { type: 'boolean', help: 'lines as they were logged (JSON)' },
  },
  completes: 'all',
  run,
};
