// `bullion bundle`: images in one file, over an air gap or a bad line: save, inspect, load; and what a side has, so that less is saved.
import { stringify } from 'yaml';
import { accessOptions } from '#cli/bundle/access.ts';
import { clusterDigests, digestsOf, haveText } from '#cli/bundle/have.ts';
import { bundleDocumentOf, bundleTable } from '#cli/bundle/inspect.ts';
import { checkAll, load, withBundle } from '#cli/bundle/loading.ts';
import { save } from '#cli/bundle/saving.ts';
import { type Call, type ClusterCommand, type ExitCode, exitCodes } from '#cli/command.ts';
import { type Line, createLine } from '#cli/line.ts';
import { outputOf, outputOption, screenOf } from '#cli/output.ts';
import { targetOptions } from '#cli/target.ts';
import { waitOptions } from '#cli/wait.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const inspect = (call: Call, line: Line, path: string): Promise<ExitCode> =>
  withBundle(path, async (bundle) => {
    if (call.values['check'] === true) await checkAll(bundle, line, call.signal);
    line.end();
    const format = outputOf(call.values);
    if (format === 'json') call.terminal.out(`${JSON.stringify(bundleDocumentOf(bundle), undefined, 2)}\n`);
    else if (format === 'yaml') call.terminal.out(stringify(bundleDocumentOf(bundle)));
    else if (format === 'name')
      call.terminal.out(bundle.document.images.map(({ name, version }) => `${version ?? name}\n`).join(''));
    else call.terminal.out(bundleTable(bundle, screenOf(call)));
    return exitCodes.done;
  });

const have = async ({ kube, namespace, positionals, values, signal, terminal }: Call): Promise<ExitCode> => {
  const places = positionals.slice(1);
  const digests: string[] = places.length === 0 ? [...(await clusterDigests(kube, namespace))] : [];
  for (const place of places) digests.push(...(await digestsOf(place, values, signal)));
  terminal.out(haveText(digests));
  return exitCodes.done;
};

const fileActions = { save, load, inspect } as const;
const actions: readonly string[] = [...Object.keys(fileActions), 'have'];

const start = (call: Call, line: Line): Promise<ExitCode> => {
  const [action = '', file] = call.positionals;
  if (!actions.includes(action)) throw new InvalidInput(`there is no bundle ${action}: use ${actions.join(', ')}`);
  if (action === 'have') return have(call);
  if (file === undefined) throw new InvalidInput(`[file] is missing: bullion bundle ${action} <file>`);
  return fileActions[action as keyof typeof fileActions](call, line, file);
};

const run = async (call: Call): Promise<ExitCode> => {
  const line = createLine(call.terminal);
  try {
    return await start(call, line);
  } finally {
    line.end();
  }
};

const { kind: _kind, ...transferOptions } = targetOptions;

export const bundleCommand: ClusterCommand = {
  name: 'bundle',
  arguments: '<action> [file] [image…]',
  summary: 'Saves images and what belongs to them into one file, and loads it on the other side of an air gap.',
  more:
    'The file is an OCI image layout, the same for the same images byte for byte.\n\n' +
    '  bullion bundle save bundle.tar jammy fedora@stable docker://quay.io/containerdisks/debian:12\n' +
    '  bullion bundle inspect bundle.tar --check\n' +
    '  bullion bundle load bundle.tar                               into this cluster, by uploads\n' +
    '  bullion bundle load bundle.tar --to oci://registry.example/golden --apply\n' +
    '  bullion bundle load bundle.tar --to s3://images/golden --endpoint https://store.example --credentials FILE\n' +
    '  bullion bundle have > have.json                              then on the first side: save --have have.json\n\n' +
    'A load compares every digest and the signatures that policies ask for before it makes anything. To go on after an interruption, run the same\n' +
    'command again. With --to oci://…, crons and policies are printed for kubectl, or created with --apply.',
  completes: actions,
  options: {
    to: { type: 'string', value: 'TARGET', help: 'load: oci://registry/prefix or s3://bucket/prefix (this cluster)' },
    have: { type: 'string', value: 'FILE', help: 'save: leave out disks that this file lists' },
    arch: { type: 'string', value: 'ARCH', help: 'save: which image of an index (that of this machine)' },
    compression: {
      type: 'string',
      value: 'HOW',
      help: 'save: inside the qcow2 of a disk of the cluster (zstd)',
      oneOf: ['none', 'zlib', 'zstd'],
    },
    'sign-with': { type: 'string', value: 'FILE', help: 'save: private key in PEM that signs the images' },
    key: {
      type: 'string',
      value: 'FILE',
      help: 'load: public key that must have signed each image; may be repeated',
      multiple: true,
    },
    'skip-signatures': { type: 'boolean', help: 'load: compare digests alone' },
    check: { type: 'boolean', help: 'inspect: compare every byte' },
    apply: { type: 'boolean', help: 'load --to oci://…: create the crons and policies in this cluster' },
    secret: { type: 'string', value: 'SECRET', help: 'load: of the crons, with the credentials of the registry' },
    'cert-config-map': {
      type: 'string',
      value: 'NAME',
      help: 'load: of the crons, with the authority of the registry',
    },
    'storage-class': { type: 'string', value: 'CLASS', help: 'load: storage class of the volumes (the default class)' },
    timeout: waitOptions.timeout,
    ...accessOptions,
    ...transferOptions,
    ...outputOption,
  },
  run,
};
