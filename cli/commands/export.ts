// `bullion export <disk> <where>`: a disk as a qcow2 file, in an object store, a registry or a claim of its own.
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { createNew } from '#cli/create.ts';
import { outputOf, outputOption, printedObject } from '#cli/output.ts';
import { parseObjectPlace } from '#shared/catalogue/import.ts';
import { timeoutOf, waitOptions, waitUntilOver } from '#cli/wait.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import { findImage } from '#shared/catalogue/image.ts';
import { type VirtualMachineVolumeExport, volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { InvalidInput, isNotFound } from '#shared/runtime/errors.ts';

type Spec = VirtualMachineVolumeExport['spec'];

type Compression = NonNullable<NonNullable<NonNullable<Spec['destination']>['registry']>['compression']>;
const compressions: readonly Compression[] = ['none', 'zlib', 'zstd'];

const imageOptions = ({ values }: Pick<Call, 'values'>) => {
  const compression = textOf(values, 'compress');
  const known = compressions.find((one) => one === compression);
  if (compression !== undefined && known === undefined)
    throw new InvalidInput(`--compress is one of ${compressions.join(', ')}, not ${compression}`);
  const signingSecretRef = textOf(values, 'sign-with');
  return {
    ...(known === undefined ? {} : { compression: known }),
    ...(signingSecretRef === undefined ? {} : { signingSecretRef }),
  };
};

const destinationOf = (place: string, call: Pick<Call, 'values'>): Pick<Spec, 'objectStore' | 'destination'> => {
  const secretRef = textOf(call.values, 'secret');
  const image = imageOptions(call);
  if (/^(docker|oci):\/\/./.test(place)) {
    const url = place.replace(/^oci:/, 'docker:');
    return { destination: { registry: { url, ...(secretRef === undefined ? {} : { secretRef }), ...image } } };
  }
  if (Object.keys(image).length > 0) throw new InvalidInput('--compress and --sign-with are for docker://');
  if (/^https?:\/\/./i.test(place))
    return { destination: { s3: { url: place, ...(secretRef === undefined ? {} : { secretRef }) } } };
  if (secretRef !== undefined) throw new InvalidInput('--secret is for https://<store>/<bucket>/<key> and docker://');
  const object = parseObjectPlace(place);
  if (object !== undefined) return { objectStore: { bucketName: object.bucket, objectName: object.key } };
  if (place === 'local') return { destination: { local: {} } };
  throw new InvalidInput(
    `${place} is not a destination: write s3://<bucket>/<key>, https://<store>/<bucket>/<key>, docker://<registry>/<repository>:<tag> or local`,
  );
};

/** A claim, or the golden volume of an image; what does not exist yet is a claim that the export waits for. Throws InvalidInput. */
export const claimOf = async (kube: KubeClient, namespace: string, wanted: string): Promise<string> => {
  if ((await kube.get(persistentVolumeClaims, { namespace, name: wanted })) !== undefined) return wanted;
  const found = await tolerate(findImage(kube, namespace, wanted), isNotFound);
  if (found === undefined) return wanted;
  const { volume, backingImage } = found.image.status?.children ?? {};
  if (volume !== undefined) return volume;
  const why = backingImage === undefined ? 'has no volume yet' : 'is in Longhorn, which has no claim for it';
  throw new InvalidInput(`image ${wanted} ${why}: bullion download ${wanted} makes a file of it`);
};

/** Throws InvalidInput. */
export const exportOf = (
  { namespace, positionals, values }: Pick<Call, 'namespace' | 'positionals' | 'values'>,
  pvcName = positionals[0] ?? '',
) => {
  const [name = '', place = ''] = positionals;
  const { kind, ...type } = volumeExportKind.type;
  const wanted: VirtualMachineVolumeExport = {
    apiVersion: apiVersionOf(type),
    kind,
    metadata: { name: textOf(values, 'name') ?? `${name}-export`, namespace },
    spec: { pvcName, ...destinationOf(place, { values }) },
  };
  return wanted;
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, values, terminal, signal } = call;
  const timeoutMs = timeoutOf(values);
  const { type } = volumeExportKind;
  exportOf(call);
  const wanted = exportOf(call, await claimOf(kube, call.namespace, call.positionals[0] ?? ''));
  const { name, namespace } = wanted.metadata;
  const made = await createNew(kube, type, wanted, {
    what: `an export ${name}`,
    otherwise: `delete it (kubectl delete vmve ${name} -n ${namespace}), or give this one another name with --name`,
  });
  const onEnd = (last: KubeObject): void => terminal.out(printedObject(last, outputOf(values)) ?? '');
  if (values['no-wait'] === true) {
    onEnd(made);
    return exitCodes.done;
  }
  // It tells how it goes with the same words as an image.
  const found = { type, image: made };
  const words = { what: 'export', work: 'export', more: `bullion why vmve/${name} -n ${namespace}` };
  return waitUntilOver({ kube, terminal, signal, timeoutMs, words, onEnd }, found);
};

export const exportCommand: ClusterCommand = {
  name: 'export',
  arguments: '<disk> <where>',
  summary:
    'Makes a qcow2 file of a disk, which is a claim or an image: in s3://bucket/key, at https://store/bucket/key, in a claim (local), or as an image in a registry (docker://host/repository:tag).',
  more: 'Ctrl-C ends the wait, not the export. With -o the export is printed as it is at the end.\n\n  bullion export root s3://exports/root.qcow2\n  bullion export jammy docker://registry.example/disks/jammy:1 --compress zstd',
  options: {
    name: { type: 'string', value: 'NAME', help: 'of the export (<disk>-export)' },
    secret: { type: 'string', value: 'SECRET', help: 'with the credentials of an https:// store or a registry' },
    compress: { type: 'string', value: 'HOW', help: 'of an image in a registry: none, zlib or zstd' },
    'sign-with': { type: 'string', value: 'SECRET', help: 'with the private key that signs an image in a registry' },
    ...waitOptions,
    ...outputOption,
  },
  completes: 'all',
  run,
};
