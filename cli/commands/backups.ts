// `bullion backups`: what the backup target holds, and what a restore would make of it here. Reads the target itself, with the Secret of the cluster.
import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { type Call, type ClusterCommand, exitCodes, textOf } from '#cli/command.ts';
import { counted, outputOf, outputOption, screenOf, tableOf } from '#cli/output.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { clusterOf } from '#shared/backup/clusters.ts';
import type { BackupDeps } from '#shared/backup/settings.ts';
import { type Entry, type Look, lookThrough } from '#shared/backup/look.ts';
import { readMemory } from '#shared/backup/memory.ts';
import { createOpenTarget, findTarget, targetName } from '#shared/backup/open.ts';
import { type Judged, type RestoreContext, judgeEntry } from '#shared/backup/restore.ts';
import { restoreWord } from '#shared/backup/restore-plan.ts';
import { type Garbage, lookForGarbage } from '#shared/backup/sweep/look.ts';
import { ownBackups } from '#shared/backup/sweep/look.ts';
import { sweepTarget } from '#shared/backup/sweep/sweep.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { backends } from '#shared/backends/registry.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { InvalidInput, NotFound } from '#shared/runtime/errors.ts';
import { createLogger } from '#shared/runtime/log.ts';

/** Who calls may connect anywhere from here. */
const everywhere = ['0.0.0.0/0', '::/0'];

const depsOf = ({ kube, values, terminal }: Call): BackupDeps => ({
  kube,
  backends,
  settings: defaultSettings,
  open: createOpenTarget({ allowedAddresses: everywhere, nfsFolder: textOf(values, 'nfs-folder') }),
  secretName: textOf(values, 'secret') ?? targetName,
  retrySeconds: 0,
  lostSeconds: 0,
  now: () => terminal.now().getTime(),
  log: createLogger({ level: 'error', write: (line) => terminal.err(line) }),
});

interface Shown extends Entry {
  readonly judged?: Judged | undefined;
}

/** What a person reads of a decision. */
const actions: Readonly<Record<Judged['is'], string>> = {
  create: 'restore',
  present: 'none: it is here',
  deleted: 'none: it was deleted',
  conflict: 'none: conflict',
  waiting: 'wait',
  unreadable: 'none: unreadable',
};

const keptWords = ({ metadata }: Entry): string | undefined =>
  metadata && (metadata.data.kept === 'chunks' ? metadata.data.disk.slice(0, 12) : 'by Longhorn');

const rowOf = ({ key, metadata, problem, judged }: Shown, isDryRun: boolean) => [
  metadata && restoreWord(metadata),
  metadata?.image.apiVersion.split('/')[0],
  metadata?.backend,
  metadata?.virtualSize === undefined ? undefined : formatBytes(metadata.virtualSize),
  metadata === undefined ? undefined : keptWords({ key, metadata }),
  ...(isDryRun ? [judged && actions[judged.is]] : []),
  key,
  isDryRun ? judged?.message : problem,
];

const headings = (isDryRun: boolean) => [
  'IMAGE',
  'GROUP',
  'BACKEND',
  'VIRTUAL SIZE',
  'DISK',
  ...(isDryRun ? ['RESTORE'] : []),
  'OBJECT',
  isDryRun ? 'BECAUSE' : 'PROBLEM',
];

export const backupTable = (shown: readonly Shown[], isDryRun: boolean, most: number | undefined): string =>
  tableOf(
    headings(isDryRun),
    shown.map((entry) => rowOf(entry, isDryRun)),
    most,
  );

const toDocument = ({ key, metadata, problem, judged }: Shown) => ({
  object: key,
  ...(metadata === undefined ? { problem } : { metadata }),
  ...(judged === undefined ? {} : { restore: actions[judged.is], because: judged.message }),
});

const judgeAll = async (context: RestoreContext, { entries }: Look): Promise<readonly Shown[]> => {
  const shown: Shown[] = [];
  for (const entry of entries) shown.push({ ...entry, judged: await judgeEntry(context, entry) });
  return shown;
};

/** Throws why there is none to be opened. */
const targetOf = async ({ kube, values }: Call): Promise<BackupTarget> => {
  const found = await findTarget(kube);
  if (found.is === 'none')
    throw new NotFound(
      'this cluster has no backup target: set one in Harvester\'s setting "backup-target", or in the ConfigMap and Secret backup-target of namespace bullion-system',
    );
  if (found.is === 'faulty') throw new InvalidInput(found.message);
  const { target } = found;
  if (target.type === 'nfs' && textOf(values, 'nfs-folder') === undefined)
    throw new InvalidInput(
      `${target.name} is read where it is mounted: mount it at DIR/<server>/<path>, and give --nfs-folder DIR`,
    );
  return target;
};

const garbageWords = ({ tables, chunks, staying }: Garbage): string => {
  const bytes = [...tables, ...chunks].reduce((sum, { size }) => sum + size, 0);
  return `${tables.length} disks and ${chunks.length} chunks that nothing refers to, ${formatBytes(bytes)}; ${staying === 1 ? '1 disk stays' : `${staying} disks stay`}\n`;
};

const runSweep = async (call: Call, isDryRun: boolean) => {
  const { kube, terminal, signal } = call;
  const target = await targetOf(call);
  const own = () => ownBackups(kube, target.name);
  const { store, close } = depsOf(call).open(target);
  const now = () => terminal.now().getTime();
  try {
    const say = (message: string) => terminal.err(`${target.name}: ${message}\n`);
    const wait = (milliseconds: number) => delay(milliseconds, undefined, { signal });
    const garbage = isDryRun
      ? await lookForGarbage(store, own, { now: now() })
      : await sweepTarget({ store, own, by: `cluster ${await clusterOf(kube)}`, now, wait, signal, say });
    terminal.out(`${isDryRun ? 'a sweep would remove' : 'removed'} ${garbageWords(garbage)}`);
  } finally {
    await close();
  }
  return exitCodes.done;
};

const read = async (call: Call, isDryRun: boolean): Promise<readonly Shown[]> => {
  const deps = depsOf(call);
  const target = await targetOf(call);
  const { store, close } = deps.open(target);
  try {
    const look = await lookThrough(store);
    call.terminal.err(`${target.name} holds ${counted(look.entries.length, 'image')}\n`);
    if (!isDryRun) return look.entries;
    const { deleted } = await readMemory(deps);
    const cluster = await clusterOf(call.kube);
    return await judgeAll({ deps, target, store, cluster, tombstones: look.tombstones, deleted }, look);
  } finally {
    await close();
  }
};

const run = async (call: Call) => {
  const isDryRun = call.values['dry-run'] === true;
  if (call.values['sweep'] === true) return runSweep(call, isDryRun);
  const shown = await read(call, isDryRun);
  const format = outputOf(call.values);
  const documents = shown.map(toDocument);
  if (format === 'json') call.terminal.out(`${JSON.stringify(documents, undefined, 2)}\n`);
  else if (format === 'yaml') call.terminal.out(stringify(documents));
  else if (format === 'name') call.terminal.out(shown.map(({ key }) => `${key}\n`).join(''));
  else if (shown.length > 0) call.terminal.out(backupTable(shown, isDryRun, screenOf(call)));
  return exitCodes.done;
};

export const backupsCommand: ClusterCommand = {
  name: 'backups',
  arguments: '',
  summary: 'Lists what the backup target holds, and what a restore would do here.',
  more:
    'Needs the rights of an operator: it reads the Secret of the target, and connects to the target from here. An entry that cannot be\n' +
    'used is listed with the reason. Nothing is changed, but with --sweep: disks and chunks that no metadata in the target refers to are removed once\n' +
    'they are a week old. A sweep is announced there 15 minutes ahead, and backups pause while it runs.\n\n  bullion backups --dry-run',
  options: {
    'dry-run': {
      type: 'boolean',
      help: 'what a restore would do with each, and why; with --sweep: how much it would remove',
    },
    sweep: { type: 'boolean', help: 'remove data that nothing in the target refers to' },
    secret: { type: 'string', value: 'NAME', help: 'Secret of the target in namespaces of images (backup-target)' },
    'nfs-folder': { type: 'string', value: 'DIR', help: 'where NFS exports are mounted here: DIR/<server>/<path>' },
    ...outputOption,
  },
  run,
};
