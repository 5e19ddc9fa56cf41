// `bullion queue`: transfers that run, and those that wait because of limits, in their order.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, type ClusterCommand, type ExitCode, type Terminal, exitCodes } from '#cli/command.ts';
import { barOf } from '#cli/line.ts';
import { paintOn } from '#cli/paint.ts';
import {
  type PaintCell,
  listOutputOption,
  customTable,
  outputOf,
  printedList,
  screenOf,
  tableOf,
} from '#cli/output.ts';
import { systemNamespace, transferQueue } from '#shared/api/names.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import type { Found } from '#shared/catalogue/image.ts';
import { type Transfer, listTransfers, readOwner } from '#shared/catalogue/transfers.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { Denied } from '#shared/runtime/errors.ts';

/** Milliseconds between two looks with --watch. */
const pollMs = 2000;
/** Objects whose progress is read; a thousand may wait. */
const mostFollowed = 100;

const headings = ['NAMESPACE', 'OBJECT', 'TRANSFER', 'SOURCE', 'STATE', 'FOR'];

/** Those that wait for their turn do nothing yet. */
const paintedIn = (terminal: Terminal): PaintCell => {
  const paint = paintOn(terminal);
  return (cell) => (cell === 'running' && paint !== undefined ? paint('working', cell) : cell);
};

const rowOf = ({ namespace, owner, role, host, isWaiting, place, since }: Transfer, now: Date): readonly string[] => [
  namespace,
  `${owner.groupKind.split('.')[0]}/${owner.name}`,
  role,
  host,
  isWaiting ? `waiting${place === '' ? '' : `: ${place}`}` : 'running',
  toAge(since, now),
];

const read = async ({ kube, namespace, values }: Call): Promise<readonly Transfer[]> => {
  const found = await listTransfers(kube, values['all-namespaces'] === true ? undefined : namespace);
  if (found.is === 'denied') throw new Denied(found.message);
  return found.is === 'read' ? found.items : [];
};

/** How far, and how fast. */
const progressOf = (found: Found | undefined, terminal: Terminal): string => {
  const { progress, transfer } = found?.image.status ?? {};
  if (progress === undefined) return '';
  const speed = transfer?.bytesPerSecond === undefined ? '' : ` ${formatBytes(transfer.bytesPerSecond)}/s`;
  const left = transfer?.etaSeconds === undefined ? '' : `, ${toSpan(transfer.etaSeconds * 1000)} left`;
  return `${barOf({ isLive: terminal.columns !== undefined }, progress)}${progress}%${speed}${left}`;
};

const drawMoving = async (call: Call): Promise<string> => {
  const { kube, terminal } = call;
  const all = await read(call);
  if (all.length === 0) return 'No transfers are running or waiting.\n';
  const rows = all.slice(0, mostFollowed).map(async (transfer) => {
    const found = transfer.isWaiting ? undefined : await readOwner(kube, transfer);
    return [...rowOf(transfer, terminal.now()), progressOf(found, terminal)];
  });
  return tableOf([...headings, 'PROGRESS'], await Promise.all(rows), terminal.columns, paintedIn(terminal));
};

/** Drawn again in its place on a terminal; elsewhere written whenever it has changed. */
const watch = async (call: Call): Promise<ExitCode> => {
  const { terminal, signal } = call;
  let before = '';
  while (!signal.aborted) {
    const text = await drawMoving(call);
    const lines = before.split('\n').length - 1;
    if (text !== before)
      terminal.out(terminal.columns === undefined || lines === 0 ? text : `\u001B[${lines}A\u001B[J${text}`);
    before = text;
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
  return exitCodes.interrupted;
};

const run = async (call: Call) => {
  const { namespace, values, terminal } = call;
  if (values['watch'] === true) return watch(call);
  const found = await read(call);
  const all = found.map(({ job }) => job);
  const printed = customTable(values, all) ?? printedList(all, outputOf(values));
  if (printed !== undefined) terminal.out(printed);
  else if (found.length === 0)
    terminal.err(
      `No transfers are running or waiting${values['all-namespaces'] === true ? '' : ` in namespace ${namespace}`}.\n`,
    );
  else
    terminal.out(
      tableOf(
        headings,
        found.map((transfer) => rowOf(transfer, terminal.now())),
        screenOf({ values, terminal }),
        paintedIn(terminal),
      ),
    );
  return exitCodes.done;
};

export const queueCommand: ClusterCommand = {
  name: 'queue',
  arguments: '',
  summary: 'Lists transfers that run and that wait for their turn.',
  more: `Imports and exports. They wait only while the ConfigMap ${transferQueue} of namespace ${systemNamespace} limits how many run at once.\n\n  bullion queue -A -w`,
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'in all namespaces' },
    watch: { type: 'boolean', short: 'w', help: 'with the progress of each, until Ctrl-C' },
    ...listOutputOption,
  },
  run,
};
