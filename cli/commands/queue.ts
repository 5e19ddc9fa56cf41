// `bullion queue`: transfers that run, and those that wait because of limits, in their order.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { listOutputOption, customTable, outputOf, printedList, screenOf, tableOf } from '#cli/output.ts';
import { systemNamespace, transferQueue } from '#shared/api/names.ts';
import { type Transfer, listTransfers } from '#shared/catalogue/transfers.ts';
import { toAge } from '#shared/runtime/age.ts';
import { Denied } from '#shared/runtime/errors.ts';

const rowOf = ({ namespace, owner, role, host, isWaiting, place, since }: Transfer, now: Date): readonly string[] => [
  namespace,
  `${owner.groupKind.split('.')[0]}/${owner.name}`,
  role,
  host,
  isWaiting ? `waiting${place === '' ? '' : `: ${place}`}` : 'running',
  toAge(since, now),
];

const run = async ({ kube, namespace, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const read = await listTransfers(kube, isEverywhere ? undefined : namespace);
  if (read.is === 'denied') throw new Denied(read.message);
  const found = read.is === 'read' ? read.items : [];
  const all = found.map(({ job }) => job);
  const printed = customTable(values, all) ?? printedList(all, outputOf(values));
  if (printed !== undefined) terminal.out(printed);
  else if (found.length === 0)
    terminal.err(`No transfers are running or waiting${isEverywhere ? '' : ` in namespace ${namespace}`}.\n`);
  else
    terminal.out(
      tableOf(
        ['NAMESPACE', 'OBJECT', 'TRANSFER', 'SOURCE', 'STATE', 'FOR'],
        found.map((transfer) => rowOf(transfer, terminal.now())),
        screenOf({ values, terminal }),
      ),
    );
  return exitCodes.done;
};

export const queueCommand: ClusterCommand = {
  name: 'queue',
  arguments: '',
  summary: 'Lists transfers that run and that wait for their turn.',
  more: `Imports and exports. They wait only while the ConfigMap ${transferQueue} of namespace ${systemNamespace} limits how many run at once.`,
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'in all namespaces' },
    ...listOutputOption,
  },
  run,
};
