// `bullion footprint`: how much is stored of images, by whom it is used, and what retention frees, as it is or as it could be.
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { fateOf } from '#cli/commands/prune.ts';
import { outputOf, outputOption, screenOf, serialise, tableOf } from '#cli/output.ts';
import { storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { deletedOwner } from '#shared/api/names.ts';
import { childrenOf } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import {
  type Footprint,
  type FootprintGroup,
  footprintGroups,
  footprintOf,
  type FootprintRow,
  type FootprintSum,
} from '#shared/catalogue/footprint.ts';
import { type LeftOut, leftOutName, leftOutWords, nameOf, readInventory } from '#shared/catalogue/inventory.ts';
import { readAll } from '#shared/catalogue/objects.ts';
import { createStored, type StoredThing, type Stores } from '#shared/catalogue/stored.ts';
import type { PolicyRetention } from '#shared/golden/rollout/policies.ts';
import { parseSpan, toAge } from '#shared/runtime/age.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const spanOf = ({ values }: Call, name: string): number | undefined => {
  const text = textOf(values, name);
  const span = parseSpan(text ?? '');
  if (text !== undefined && span === undefined)
    throw new InvalidInput(`--${name} is a duration such as 12h or 30d, not ${text}`);
  return span;
};

const keepOf = ({ values }: Call): number | undefined => {
  const text = textOf(values, 'keep');
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidInput(`--keep is a number of versions from 1, not ${text}`);
  return Number(text);
};

/** `undefined`: nothing is simulated. */
const simulatedOf = (call: Call): PolicyRetention | undefined => {
  const retention = { keep: keepOf(call), maxAge: spanOf(call, 'max-age'), unusedFor: spanOf(call, 'unused-for') };
  return Object.values(retention).some((limit) => limit !== undefined) ? retention : undefined;
};

/** Each kind is listed once, however much there is. */
const readStores = async ({ kube, namespace, terminal }: Call): Promise<Stores & { leftOut: readonly LeftOut[] }> => {
  const where = { namespace: longhornNamespace, labelSelector: childrenOf(deletedOwner) };
  const [inventory, classes, elsewhere] = await Promise.all([
    readInventory(kube, namespace, { withMachines: false }),
    readAll(kube, storageClasses),
    readAll(kube, backingImages, where),
  ]);
  return {
    inventory,
    classes: classes.is === 'read' ? classes.items : undefined,
    holders: elsewhere.is === 'read' ? elsewhere.items : [],
    now: terminal.now().getTime(),
    leftOut: [
      ...inventory.leftOut,
      ...(classes.is === 'denied' ? [{ kind: nameOf(storageClasses) }] : []),
      ...(elsewhere.is === 'denied' ? [{ kind: `${nameOf(backingImages)} of deleted images` }] : []),
    ],
  };
};

const headings: Readonly<Record<FootprintGroup, readonly string[]>> = {
  image: ['NAMESPACE', 'IMAGE'],
  version: ['NAMESPACE', 'VERSION', 'KIND', 'CLASS'],
  class: ['CLASS'],
  namespace: ['NAMESPACE'],
};

const sumColumns: readonly (readonly [string, (sum: FootprintSum, now: Date) => string | number | undefined])[] = [
  ['SIZE', ({ bytes }) => formatBytes(bytes)],
  ['DISKS', ({ disks }) => disks],
  ['LAST USED', ({ lastUse }, now) => (lastUse === undefined ? undefined : toAge(lastUse, now))],
  ['MAY GO', ({ freedBytes }) => formatBytes(freedBytes)],
  ['HELD', ({ heldBytes }) => formatBytes(heldBytes)],
];
const fetchedColumn: (typeof sumColumns)[number] = [
  'FETCHED',
  ({ publishedBytes }) => `>= ${formatBytes(publishedBytes)}`,
];

const groupCells = ({ stored, sharedBytes }: FootprintSum) => [stored, formatBytes(sharedBytes)];

const showTable = (call: Call, { rows, total }: Footprint, by: FootprintGroup): string => {
  const now = call.terminal.now();
  const isSingle = by === 'version';
  const names = headings[by];
  const columns = [...sumColumns, ...(outputOf(call.values) === 'wide' ? [fetchedColumn] : [])];
  const sumCells = (sum: FootprintSum) => columns.map(([, cell]) => cell(sum, now));
  const namesOf = ({ namespace, name, thing }: FootprintRow) => [
    ...(names.length > 1 ? [namespace] : []),
    name,
    ...(isSingle ? [thing?.kind, thing?.className] : []),
  ];
  const lastOf = ({ thing, ...sum }: FootprintRow) =>
    thing === undefined ? groupCells(sum) : [fateOf(thing.keptBy, thing.until, now)];
  return tableOf(
    [...names, ...columns.map(([heading]) => heading), ...(isSingle ? ['WHAT HAPPENS'] : ['STORED', 'SHARED'])],
    [
      ...rows.map((row) => [...namesOf(row), ...sumCells(row), ...lastOf(row)]),
      ['TOTAL', ...names.slice(1).map(() => ''), ...sumCells(total), ...(isSingle ? [''] : groupCells(total))],
    ],
    screenOf(call),
  );
};

/** For programs: what tells one thing, without what only sums need. */
const plainRow = ({ thing, ...row }: FootprintRow): object =>
  thing === undefined
    ? row
    : {
        ...row,
        kind: thing.kind,
        storageClass: thing.className,
        storedFor: thing.storedFor,
        keptBy: thing.keptBy,
        freedAt: thing.until === undefined ? undefined : new Date(thing.until).toISOString(),
      };

const sentences = (
  { freedBytes, heldBytes, publishedBytes, sameContentBytes }: FootprintSum,
  simulatedFrom: FootprintSum | undefined,
): readonly string[] => [
  simulatedFrom === undefined
    ? `Retention keeps ${formatBytes(freedBytes)} no longer, and would free ${formatBytes(heldBytes)} more but for what needs it.`
    : `With this retention everywhere, ${formatBytes(freedBytes)} would go (now: ${formatBytes(simulatedFrom.freedBytes)}), and ${formatBytes(heldBytes)} would stay only since something needs it.`,
  `SIZE is the provisioned size. At least ${formatBytes(publishedBytes)} were fetched or uploaded for it: the files as published, each content once.`,
  ...(sameContentBytes === 0
    ? []
    : [`${formatBytes(sameContentBytes)} of it hold the same content as something else that is stored.`]),
];

const run = async (call: Call): Promise<ExitCode> => {
  const { namespace, values, terminal } = call;
  const by = footprintGroups.find((group) => group === textOf(values, 'by')) ?? 'image';
  const simulated = simulatedOf(call);
  const { leftOut, ...stores } = await readStores(call);
  const storedWith = createStored(stores);
  const isHere = ({ storedFor }: StoredThing): boolean =>
    values['all-namespaces'] === true || storedFor.some((one) => one.namespace === namespace);
  const summed = (retention: PolicyRetention | undefined) => footprintOf(storedWith(retention).filter(isHere), by);
  const footprint = summed(simulated);
  const format = outputOf(values);
  if (format === 'json' || format === 'yaml') {
    const { rows, total } = footprint;
    terminal.out(
      serialise({ by, simulated, rows: rows.map(plainRow), total, leftOut: leftOut.map(leftOutName) }, format),
    );
    return exitCodes.done;
  }
  if (footprint.rows.length > 0) terminal.out(showTable(call, footprint, by));
  else
    terminal.err(
      `Nothing is stored of images${values['all-namespaces'] === true ? '' : ` in namespace ${namespace}`}.\n`,
    );
  const now = simulated === undefined ? undefined : summed(undefined).total;
  for (const sentence of sentences(footprint.total, now)) terminal.err(`${sentence}\n`);
  if (leftOut.length > 0)
    terminal.err(
      `Left out, because your account has no right to list it: ${leftOutWords(leftOut)}. What retention keeps, and disks, are counted without them.\n`,
    );
  return exitCodes.done;
};

export const footprintCommand: ClusterCommand = {
  name: 'footprint',
  arguments: '',
  summary:
    'Shows how much images and versions of golden images take, what was made from them, and what retention frees.',
  more: 'Images, versions, copies of versions in other storage classes, and what was deleted and can be brought back; each is counted once.\nMAY GO: retention keeps it no longer, so that bullion prune, or the next import, deletes it; its bytes are freed after spec.retention.undeleteFor. HELD: retention alone would not keep it, but a channel, a lock, a disk or a backup does.\n--keep, --max-age and --unused-for simulate spec.retention, as if every golden image had it; a field that is left out is not set. Nothing is deleted.\n\n  bullion footprint -A\n  bullion footprint -n golden-images --by version\n  bullion footprint -A --keep 2 --unused-for 30d',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    by: { type: 'string', value: 'GROUP', help: 'what a row is about (image)', oneOf: footprintGroups },
    keep: { type: 'string', value: 'N', help: 'simulate: keep the N versions used last' },
    'max-age': { type: 'string', value: 'DURATION', help: 'simulate: keep versions younger than that, such as 90d' },
    'unused-for': { type: 'string', value: 'DURATION', help: 'simulate: keep versions used within that, such as 30d' },
    output: { ...outputOption.output, oneOf: ['json', 'yaml', 'wide'] },
  },
  run,
};
