// `bullion disk <name> <source>`: a disk from an image, a DataSource or another disk, in the way that each is made to be used.
import { type Call, type ClusterCommand, type ExitCode, type Values, exitCodes, textOf } from '#cli/command.ts';
import { type Found, isImage } from '#shared/catalogue/image.ts';
import { findAny, namesOf } from '#shared/catalogue/objects.ts';
import { createNew } from '#cli/create.ts';
import { outputOf, outputOption, printedObject } from '#cli/output.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import type { Image } from '#shared/backends/backend.ts';
import { backends, registrationOf } from '#shared/backends/registry.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { Denied, InvalidInput, NotFound } from '#shared/runtime/errors.ts';

interface Wanted {
  readonly name: string;
  readonly namespace: string;
  /** Left out: that of the source. */
  readonly size: string | undefined;
  readonly className: string | undefined;
}

type DataVolumeSource = Pick<DataVolume['spec'], 'source' | 'sourceRef'>;

const dataVolumeOf = ({ name, namespace, size, className }: Wanted, from: DataVolumeSource): DataVolume => ({
  apiVersion: apiVersionOf(dataVolumeKind.type),
  kind: dataVolumeKind.type.kind,
  metadata: { name, namespace },
  spec: {
    ...from,
    storage: {
      ...(className === undefined ? {} : { storageClassName: className }),
      ...(size === undefined ? {} : { resources: { requests: { storage: size } } }),
    },
  },
});

/** An empty claim of the image's own class, which the storage fills. */
const claimOf = ({ name, namespace, size }: Wanted, className: string, diskBytes: number): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: persistentVolumeClaims.kind,
  metadata: { name, namespace },
  spec: {
    accessModes: ['ReadWriteMany'],
    volumeMode: 'Block',
    storageClassName: className,
    resources: { requests: { storage: size ?? formatQuantity(diskBytes) } },
  },
});

const fromImage = (wanted: Wanted, { image: object }: Found): KubeObject => {
  const image = reconcilerOf(object)?.read(object) as Image;
  const registration = registrationOf(backends, image.backend);
  const { phase, message } = image.state;
  if (phase !== 'Available' || !registration.served)
    throw new InvalidInput(`image ${object.metadata.name} cannot be used yet: ${message}`);
  const disk = registration.backend.rootDiskOf(image);
  if (disk.is === 'class') {
    if (wanted.className !== undefined)
      throw new InvalidInput(`disks of ${object.metadata.name} are in its own storage class ${disk.className}`);
    return claimOf(wanted, disk.className, object.status?.virtualSize ?? 0);
  }
  const at = { namespace: object.metadata.namespace ?? '', name: disk.snapshot ?? disk.volume };
  return dataVolumeOf(wanted, { source: disk.snapshot === undefined ? { pvc: at } : { snapshot: at } });
};

/** The object that makes the disk. Throws InvalidInput where there is nothing to make one from. */
export const diskOf = (wanted: Wanted, found: Found): KubeObject => {
  const { type, image: object } = found;
  const { name, namespace = '' } = object.metadata;
  if (isImage(type)) return fromImage(wanted, found);
  if (type.kind === dataSourceKind.type.kind)
    return dataVolumeOf(wanted, { sourceRef: { kind: type.kind, name, namespace } });
  if (type.kind === persistentVolumeClaims.kind) return dataVolumeOf(wanted, { source: { pvc: { name, namespace } } });
  const claim = (reconcilerOf(object)?.read(object) as Partial<Volume> | undefined)?.claim;
  if (claim === undefined)
    throw new InvalidInput(`${type.kind.toLowerCase()}/${name} holds no disk: name an image, a DataSource or a volume`);
  return dataVolumeOf(wanted, { source: { pvc: { name: claim.name, namespace } } });
};

const sizeOf = (values: Values): string | undefined => {
  const size = textOf(values, 'size');
  if (size !== undefined && parseQuantity(size) === undefined)
    throw new InvalidInput(`--size is a quantity such as 20Gi, not ${size}`);
  return size;
};

const typeOf = ({ kind }: KubeObject): ResourceType =>
  kind === persistentVolumeClaims.kind ? persistentVolumeClaims : dataVolumeKind.type;

/** A DataSource is used by its name alone: one that is offered need not be readable. Whether it may be used, admission decides. */
const sourceOf = async (call: Call, namespace: string, source: string): Promise<Found> => {
  try {
    return await findAny(call.kube, namespace, source);
  } catch (error) {
    if (error instanceof NotFound) throw new NotFound(`${error.message}, --from names that of the source alone`);
    const [kind = '', name = ''] = source.split('/');
    const { type } = dataSourceKind;
    if (!(error instanceof Denied) || !namesOf(type).includes(kind.toLowerCase())) throw error;
    return { type, image: { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { name, namespace } } };
  }
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, positionals, values, terminal } = call;
  const [name = '', source = ''] = positionals;
  const wanted = { name, namespace, size: sizeOf(values), className: textOf(values, 'storage-class') };
  const object = diskOf(wanted, await sourceOf(call, textOf(values, 'from') ?? namespace, source));
  const isDryRun = values['dry-run'] === true;
  const shown = `${object.kind === persistentVolumeClaims.kind ? 'pvc' : 'datavolume'}/${name}`;
  const made = await createNew(kube, typeOf(object), object, {
    what: `a ${shown}`,
    otherwise: `bullion why ${shown} -n ${namespace} shows it; delete it, or take another name`,
    dryRun: isDryRun,
  });
  terminal.err(
    isDryRun ? `${shown} would be created\n` : `${shown} is being created: bullion why ${shown} -n ${namespace}\n`,
  );
  terminal.out(printedObject(made, outputOf(values)) ?? '');
  return exitCodes.done;
};

export const diskCommand: ClusterCommand = {
  name: 'disk',
  arguments: '<name> <source>',
  summary: 'Makes a disk from an image, a DataSource or another disk.',
  more: 'The source is an image, or <kind>/<name>: datasource/fedora, pvc/root, datavolume/root.\n\n  bullion disk web jammy --size 40Gi\n  bullion disk web datasource/fedora --from golden-images -n vms',
  options: {
    size: { type: 'string', value: 'SIZE', help: 'size of the disk (that of its source)' },
    'storage-class': { type: 'string', value: 'CLASS', help: 'storage class of the disk (the default class)' },
    from: { type: 'string', value: 'NAMESPACE', help: 'namespace of the source (that of the disk)' },
    'dry-run': { type: 'boolean', help: 'only ask the cluster whether it would accept the disk' },
    ...outputOption,
  },
  run,
};
