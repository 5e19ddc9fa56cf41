// `bullion queue`: transfers that limits apply to, those that run and those that wait, in their order.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { listOutputOption, customTable, outputOf, printedList, screenOf, tableOf } from '#cli/output.ts';
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import { annotations, labels, systemNamespace, transferQueue } from '#shared/api/names.ts';
import { isFinished, isQueued } from '#shared/populate/job/attempts.ts';
import { toAge } from '#shared/runtime/age.ts';

const placeOf = (job: Job): string => job.metadata.annotations?.[annotations.queuePlace] ?? '';

/** `after the first 10` comes behind `10 of 14`. */
const numberOf = (place: string): number => Number(/\d+/.exec(place)?.[0] ?? 0) + (place.startsWith('after') ? 0.5 : 0);

/** Those that run first, then by place, then by age. */
const inOrder = (a: Job, b: Job): number =>
  Number(isQueued(a)) - Number(isQueued(b)) ||
  numberOf(placeOf(a)) - numberOf(placeOf(b)) ||
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '');

const kindOf = ({ metadata }: Job): string => (metadata.labels?.[labels.ownerKind] ?? '').split('.')[0] ?? '';

const rowOf = (job: Job, now: Date): readonly string[] => {
  const { namespace = '', annotations: notes = {}, creationTimestamp } = job.metadata;
  const [, role = ''] = /^([a-z]+)-/.exec(job.metadata.name) ?? [];
  return [
    namespace,
    `${kindOf(job)}/${notes[annotations.ownerName] ?? ''}`,
    role,
    notes[annotations.sourceHost] ?? '',
    isQueued(job) ? `waiting${placeOf(job) === '' ? '' : `: ${placeOf(job)}`}` : 'running',
    toAge(job.status?.startTime ?? creationTimestamp, now),
  ];
};

const run = async ({ kube, namespace, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const where = { namespace: isEverywhere ? undefined : namespace, labelSelector: labels.queue };
  const found = (await Array.fromAsync(kube.listAll(jobs, where))).filter((job) => !isFinished(job)).toSorted(inOrder);
  const printed = customTable(values, found) ?? printedList(found, outputOf(values));
  if (printed !== undefined) terminal.out(printed);
  else if (found.length === 0)
    terminal.err(
      `No transfers are running or waiting${isEverywhere ? '' : ` in namespace ${namespace}`}, as far as ConfigMap ${systemNamespace}/${transferQueue} limits them.\n`,
    );
  else
    terminal.out(
      tableOf(
        ['NAMESPACE', 'OBJECT', 'TRANSFER', 'SOURCE', 'STATE', 'FOR'],
        found.map((job) => rowOf(job, terminal.now())),
        screenOf({ values, terminal }),
      ),
    );
  return exitCodes.done;
};

export const queueCommand: ClusterCommand = {
  name: 'queue',
  arguments: '',
  summary: 'Lists transfers that run and that wait for their turn.',
  more: `Imports and exports, while the ConfigMap ${transferQueue} of namespace ${systemNamespace} limits how many run at once.`,
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'in all namespaces' },
    ...listOutputOption,
  },
  run,
};
