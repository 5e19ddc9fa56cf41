// `bullion consumers`, `bullion outdated` and `bullion delete`: who uses an image, which disks hold an earlier version of one, and its end.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, type ClusterCommand, type ExitCode, exitCodes } from '#cli/command.ts';
import { type Found, groupOf, isImage, readyOf } from '#shared/catalogue/image.ts';
import { createLine } from '#cli/line.ts';
import { findAny } from '#shared/catalogue/objects.ts';
import { leftOutWords, readInventory } from '#shared/catalogue/inventory.ts';
import { outputOf, outputOption, printedList, screenOf, tableOf } from '#cli/output.ts';
import { timeoutOf, waitOptions } from '#cli/wait.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { graceOf } from '#shared/resources/deleted-images/record.ts';
import { type Consumer, type Inventory, consumersOf, offeredTo } from '#shared/resources/consumers.ts';
import { outdatedDisks } from '#shared/resources/outdated-disks.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { Denied } from '#shared/runtime/errors.ts';

/** Everything that may be made from something else, as far as this person may see it. */
const inventoryFor = async ({ kube, namespace, terminal }: Call): Promise<Inventory> => {
  const { isPartial, leftOut, ...inventory } = await readInventory(kube, namespace);
  if (isPartial)
    terminal.err(`Disks may be missing here: your account has no right to list ${leftOutWords(leftOut)}\n`);
  return inventory;
};

const shownName = ({ kind, metadata }: KubeObject): string => `${kind.toLowerCase()}/${metadata.name}`;

const consumerTable = (call: Call, consumers: readonly Consumer[]): string =>
  tableOf(
    ['NAMESPACE', 'NAME', 'USED BY', 'MADE FROM', 'AGE'],
    consumers.map(({ object, machines, from }) => [
      object.metadata.namespace,
      shownName(object),
      machines.join(','),
      `${from.groupKind.split('.')[0]?.toLowerCase()}/${from.name}`,
      toAge(object.metadata.creationTimestamp, call.terminal.now()),
    ]),
    screenOf(call),
  );

/** Of namespaces that something is offered to; the rest is counted. */
const mostNamed = 10;

/** Namespaces that have a DataSource of it, which is nobody's disk. */
const reportOffers = ({ terminal }: Call, image: KubeObject, inventory: Inventory): void => {
  const all = offeredTo(image, inventory);
  if (all.length === 0) return;
  const rest = all.length > mostNamed ? ` and ${all.length - mostNamed} more` : '';
  terminal.err(`It is offered to other namespaces: ${all.slice(0, mostNamed).join(', ')}${rest}\n`);
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, positionals, values, terminal } = call;
  const { image } = await findAny(kube, namespace, positionals[0] ?? '');
  const inventory = await inventoryFor(call);
  const consumers = consumersOf(image, inventory);
  const printed = printedList(
    consumers.map(({ object }) => object),
    outputOf(values),
  );
  if (printed !== undefined) terminal.out(printed);
  else if (consumers.length === 0) terminal.err(`Nothing was made from ${shownName(image)}.\n`);
  else terminal.out(consumerTable(call, consumers));
  reportOffers(call, image, inventory);
  return exitCodes.done;
};

export const consumersCommand: ClusterCommand = {
  name: 'consumers',
  arguments: '<name>',
  summary: 'Lists the disks made from an image, a DataSource or a volume, and the machines that use them.',
  more: 'Disks of all namespaces that you may list. <kind>/<name> where several objects have the name.\n\n  bullion consumers fedora\n  bullion consumers datasource/fedora -n golden-images -o name',
  options: outputOption,
  completes: 'all',
  run,
};

const runOutdated = async (call: Call): Promise<ExitCode> => {
  const { namespace, values, terminal } = call;
  const isEverywhere = values['all-namespaces'] === true;
  const inventory = await inventoryFor(call);
  const disks = outdatedDisks(inventory).filter(
    ({ object }) => isEverywhere || object.metadata.namespace === namespace,
  );
  const printed = printedList(
    disks.map(({ object }) => object),
    outputOf(values),
  );
  if (printed !== undefined) terminal.out(printed);
  else if (disks.length === 0)
    terminal.err(`No outdated disks found${isEverywhere ? '' : ` in namespace ${namespace}`}.\n`);
  else
    terminal.out(
      tableOf(
        ['NAMESPACE', 'DISK', 'USED BY', 'DATASOURCE', 'VERSION', 'OFFERED', 'BEHIND', 'AGE'],
        disks.map(({ object, machines, dataSource, version, current, behind }) => [
          object.metadata.namespace,
          shownName(object),
          machines.join(','),
          `${dataSource.metadata.namespace}/${dataSource.metadata.name}`,
          version ?? 'removed',
          current,
          behind,
          toAge(object.metadata.creationTimestamp, terminal.now()),
        ]),
        screenOf(call),
      ),
    );
  return exitCodes.done;
};

export const outdatedCommand: ClusterCommand = {
  name: 'outdated',
  arguments: '',
  summary: 'Lists disks that hold another version of a golden image than its DataSource offers now.',
  more: 'BEHIND counts the versions between them, of those that are kept; it is negative for disks made before a rollback.\nDisks filled by another program are not known to be outdated.\n\n  bullion outdated -A',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    ...outputOption,
  },
  run: runOutdated,
};

/** Until it is gone; shows why that takes its time. */
const waitUntilGone = async (call: Call, { type, image }: Found): Promise<ExitCode> => {
  const { kube, terminal, signal, values } = call;
  const { namespace, name, uid } = image.metadata;
  const limit = timeoutOf(values);
  const deadline = limit === undefined ? Number.POSITIVE_INFINITY : performance.now() + limit;
  const line = createLine(terminal);
  for (;;) {
    const now = await kube.get(type, { namespace, name });
    if (now === undefined || now.metadata.uid !== uid) {
      line.end();
      terminal.err(`${shownName(image)} is deleted\n`);
      return exitCodes.done;
    }
    const message = readyOf({ type, image: now })?.message ?? 'being deleted';
    if (performance.now() > deadline) {
      line.end();
      terminal.err(`${shownName(image)} is still there: ${message}\n`);
      return exitCodes.timedOut;
    }
    line.show(`${shownName(image)}: ${message}`);
    await sleep(1000, undefined, { signal });
  }
};

const uidOf = ({ metadata: { uid } }: KubeObject) => (uid === undefined ? {} : { uid });

const runDelete = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, positionals, values, terminal } = call;
  const found = await findAny(kube, namespace, positionals[0] ?? '');
  const { image, type } = found;
  // As it was read: somebody else's object of the same name is not deleted in its place.
  const remove = (dryRun: boolean) => kube.delete(type, image.metadata, { dryRun, ...uidOf(image) });
  // Without the right to delete, that is the only message. Objections of admission follow the list of consumers, which they are often about.
  await remove(true).catch((error: unknown) => {
    if (error instanceof Denied && / cannot delete resource /.test(error.message)) throw error;
  });
  const inventory = await inventoryFor(call);
  const consumers = consumersOf(image, inventory);
  reportOffers(call, image, inventory);
  if (consumers.length > 0) {
    terminal.err(`${shownName(image)} is in use:\n${consumerTable(call, consumers)}`);
    if (values['yes'] !== true && values['dry-run'] !== true) {
      terminal.err('Disks that are filled keep their contents; new ones cannot be made. To delete it anyway: --yes\n');
      return exitCodes.failed;
    }
  }
  const isDryRun = values['dry-run'] === true;
  await remove(isDryRun);
  if (isDryRun) terminal.err(`${shownName(image)} would be deleted\n`);
  const grace = isImage(type) ? graceOf(image) : undefined;
  if (!isDryRun && grace !== undefined)
    terminal.err(
      `it can be brought back for ${toSpan(grace)}: bullion undelete ${groupOf(found)}/${image.metadata.name}\n`,
    );
  return isDryRun || values['no-wait'] === true ? exitCodes.done : waitUntilGone(call, found);
};

export const deleteCommand: ClusterCommand = {
  name: 'delete',
  arguments: '<name>',
  summary: 'Deletes an image or a volume, once its consumers have been named.',
  more: 'Refuses where disks were made from it, and lists them, unless --yes is given. <kind>/<name> where several objects have the name.\n\n  bullion delete fedora --dry-run\n  bullion delete datavolume/root -n vms --yes',
  options: {
    yes: { type: 'boolean', short: 'y', help: 'delete it although it has consumers' },
    'dry-run': { type: 'boolean', help: 'only name the consumers, and ask the cluster whether it would delete it' },
    ...waitOptions,
  },
  completes: 'all',
  run: runDelete,
};
