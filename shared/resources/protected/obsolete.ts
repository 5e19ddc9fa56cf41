// Disks of golden images that are at their end: made from a deprecated version with a warning, from an obsolete one only where somebody insists
// (protected/obsolete-version). Asked of whatever names a source: claims, DataVolumes, and the templates of virtual machines.
import { isDeepStrictEqual } from 'node:util';
import { grantFor } from '#shared/access/permissions.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import {
  type VirtualMachinePvc,
  type VirtualMachineVolume,
  virtualMachinePvcKind,
  virtualMachineVolumeKind,
} from '#shared/api/hypercloud/volume.ts';
import type { KubeObject, Owner, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  type DeprecationMark,
  deprecationIn,
  deprecationOfImage,
  sentenceOf,
} from '#shared/golden/rollout/deprecation.ts';
import { imageOfClass } from '#shared/resources/image-rules.ts';
import { imageHeldIn, imageOf } from '#shared/resources/protected/golden.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

type SourceKind = 'claim' | 'snapshot' | 'data-source' | 'class' | 'image';

/** What a disk is made from. */
interface NamedSource {
  readonly kind: SourceKind;
  readonly namespace: string;
  readonly name: string;
}

interface WantedDisk {
  /** Of the source in the object that was sent. */
  readonly field: string;
  readonly source: NamedSource;
  /** Whether it is to be made from an obsolete version as well. */
  readonly isForced: boolean;
}

/** Templates whose sources are read for one machine. */
const mostTemplates = 32;

const isForced = (metadata: KubeObject['metadata'] | undefined): boolean =>
  metadata?.annotations?.[annotations.allowObsolete] === 'true';

type VolumeLike = Pick<DataVolume, 'spec'> & { readonly metadata?: KubeObject['metadata'] };

/** A volume in the storage class of an image is a copy of it. */
const ofClass = (name: string | undefined, field: string, metadata: VolumeLike['metadata']): readonly WantedDisk[] =>
  name === undefined || name === ''
    ? []
    : [{ field, source: { kind: 'class', namespace: '', name }, isForced: isForced(metadata) }];

const diskOfVolume = ({ metadata, spec }: VolumeLike, own: string, path: string): readonly WantedDisk[] => {
  const { source = {}, sourceRef } = spec;
  const named = [
    ['claim', 'source.pvc', source.pvc],
    ['snapshot', 'source.snapshot', source.snapshot],
    ['data-source', 'sourceRef', sourceRef],
  ] as const;
  const sources = named.flatMap(([kind, field, one]) =>
    one === undefined
      ? []
      : [
          {
            field: `${path}.${field}`,
            source: { kind, namespace: one.namespace ?? own, name: one.name },
            isForced: isForced(metadata),
          },
        ],
  );
  const classes = (['storage', 'pvc'] as const).flatMap((part) =>
    ofClass(spec[part]?.storageClassName, `${path}.${part}.storageClassName`, metadata),
  );
  return [...sources, ...classes];
};

/** HyperCloud's two forms of a volume from an image. */
const diskOfImageVolume = (volume: VirtualMachineVolume | VirtualMachinePvc, own: string): readonly WantedDisk[] => {
  const [field, name] =
    'virtualMachineImage' in volume.spec
      ? ['spec.virtualMachineImage.name', volume.spec.virtualMachineImage.name]
      : ['spec.virtualMachineImageName', volume.spec.virtualMachineImageName];
  return [{ field, source: { kind: 'image', namespace: own, name }, isForced: isForced(volume.metadata) }];
};

const claimSources: Readonly<Record<string, SourceKind>> = {
  PersistentVolumeClaim: 'claim',
  VolumeSnapshot: 'snapshot',
};

const diskOfClaim = ({ metadata, spec }: PersistentVolumeClaim, own: string): readonly WantedDisk[] => [
  ...ofClass(spec.storageClassName, 'spec.storageClassName', metadata),
  ...(['dataSource', 'dataSourceRef'] as const).flatMap((field): readonly WantedDisk[] => {
    const named = spec[field];
    const kind = named === undefined ? undefined : claimSources[named.kind];
    if (named === undefined || kind === undefined) return [];
    return [
      { field: `spec.${field}`, source: { kind, namespace: own, name: named.name }, isForced: isForced(metadata) },
    ];
  }),
];

interface Machine extends KubeObject {
  readonly spec?: { readonly dataVolumeTemplates?: readonly VolumeLike[] };
}

/** New templates, and those that were changed. */
const disksOfMachine = (machine: Machine, before: Machine | undefined, own: string): readonly WantedDisk[] => {
  const old = before?.spec?.dataVolumeTemplates ?? [];
  return (machine.spec?.dataVolumeTemplates ?? [])
    .map((template, index) => ({ template, index }))
    .filter(({ template }) => !old.some((one) => isDeepStrictEqual(one, template)))
    .slice(0, mostTemplates)
    .flatMap(({ template, index }) => diskOfVolume(template, own, `spec.dataVolumeTemplates[${index}].spec`));
};

const disksOf = ({ object, oldObject, namespace = '' }: AdmissionRequest): readonly WantedDisk[] => {
  switch (object?.kind) {
    case persistentVolumeClaims.kind:
      return diskOfClaim(object as PersistentVolumeClaim, namespace);
    case dataVolumeKind.type.kind:
      return diskOfVolume(object as DataVolume, namespace, 'spec');
    case virtualMachineVolumeKind.type.kind:
    case virtualMachinePvcKind.type.kind:
      return diskOfImageVolume(object as VirtualMachineVolume | VirtualMachinePvc, namespace);
    case virtualMachines.kind:
      return disksOfMachine(object as Machine, oldObject as Machine | undefined, namespace);
    default:
      return [];
  }
};

interface Found {
  /** Without a policy: that of an image. */
  readonly mark: Omit<DeprecationMark, 'policy'> & { readonly policy?: string | undefined };
  readonly namespace: string;
  /** The image that is marked. */
  readonly image?: string | undefined;
  /** The DataSource that is marked; `undefined`: the version is. */
  readonly dataSource?: string | undefined;
}

const sourcesBehind = ({ metadata, spec, status }: DataSource): readonly NamedSource[] => {
  const { pvc, snapshot, dataSource } =
    spec.source.dataSource === undefined ? (status?.source ?? spec.source) : spec.source;
  const own = metadata.namespace ?? '';
  const named = [
    ['claim', pvc],
    ['snapshot', snapshot],
    ['data-source', dataSource],
  ] as const;
  return named.flatMap(([kind, one]) =>
    one === undefined ? [] : [{ kind, namespace: one.namespace ?? own, name: one.name }],
  );
};

const types: Readonly<Record<'claim' | 'snapshot', ResourceType>> = {
  claim: persistentVolumeClaims,
  snapshot: volumeSnapshots,
};

const markOf = (image: KubeObject | undefined): readonly Found[] => {
  const mark = deprecationOfImage(image);
  const { namespace = '', name } = image?.metadata ?? {};
  return mark === undefined ? [] : [{ mark, namespace, image: name }];
};

const marksOfImage = async (owner: Owner | undefined, kube: KubeClient): Promise<readonly Found[]> =>
  markOf(owner === undefined ? undefined : await imageOf(owner, kube));

/** What marks a source: a DataSource, one that it points to, or the version behind both. `hops`: that may still be followed. */
const findMarks = async (kube: KubeClient, source: NamedSource, hops = 2): Promise<readonly Found[]> => {
  const { kind, namespace, name } = source;
  if (kind === 'class') return marksOfImage(await imageOfClass(kube, name), kube);
  if (kind === 'image') return markOf(await kube.get(hyperCloudImageKind.type, { namespace, name }));
  if (kind !== 'data-source') {
    const object = await kube.get(types[kind], { namespace, name });
    const mark = deprecationIn(object);
    if (object === undefined || mark !== undefined) return mark === undefined ? [] : [{ mark, namespace }];
    return marksOfImage(await imageHeldIn(object, kube), kube);
  }
  const object = await kube.get(dataSourceKind.type, { namespace, name });
  if (object === undefined) return [];
  const mark = deprecationIn(object);
  const behind = hops === 0 ? [] : sourcesBehind(object);
  const marks = await Promise.all(behind.map((one) => findMarks(kube, one, hops - 1)));
  return [...(mark === undefined ? [] : [{ mark, namespace, dataSource: name }]), ...marks.flat()];
};

/** A policy that is gone, or gave a channel up, has left its marks behind. */
const isInForce = async (kube: KubeClient, { mark, namespace, dataSource }: Found): Promise<boolean> => {
  if (mark.policy === undefined) return true;
  const policy = await kube.get(goldenImagePolicyKind.type, { namespace, name: mark.policy });
  if (policy === undefined) return false;
  return dataSource === undefined || policy.spec.channels.some((channel) => channel.dataSource === dataSource);
};

/** Of those in force the strictest, and of equals the one that was named. */
const strictestOf = async (kube: KubeClient, all: readonly Found[]): Promise<Found | undefined> => {
  const judged = await Promise.all(all.map(async (found) => ((await isInForce(kube, found)) ? [found] : [])));
  const found = judged.flat();
  return found.find(({ mark }) => mark.state === 'Obsolete') ?? found[0];
};

/** No warning about sources that their author may not use: another rule refuses those. */
const mayKnow = async ({ userInfo, namespace: own }: AdmissionRequest, { source }: WantedDisk, kube: KubeClient) => {
  const { kind, namespace, name } = source;
  // Whoever may not use the image of a class is refused before (protected/image-class-allowed).
  if (namespace === own || kind === 'class') return true;
  const use = kind === 'snapshot' ? 'clone-snapshot' : 'clone-claim';
  return (await grantFor(kube, userInfo, { use, namespace, name })) !== undefined;
};

const messageFor = ({ mark, namespace, dataSource, image }: Found): string => {
  if (image !== undefined) return `image ${namespace}/${image} is ${sentenceOf(mark, 'image')}`;
  const what = mark.version ?? `what DataSource ${namespace}/${dataSource} stands for`;
  return `${what} of GoldenImagePolicy ${namespace}/${mark.policy} is ${sentenceOf(mark)}`;
};

const force = `to create it anyway, annotate it ${annotations.allowObsolete}=true`;

export const keepFromObsolete = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const judged = await Promise.all(
    disksOf(request).map(async (disk) => {
      const found = await strictestOf(kube, await findMarks(kube, disk.source));
      if (found === undefined || !(await mayKnow(request, disk, kube))) return [];
      return [{ disk, found, isRefused: found.mark.state === 'Obsolete' && !disk.isForced }];
    }),
  );
  const all = judged.flat();
  const faults = all.flatMap(({ disk, found, isRefused }) =>
    isRefused ? [{ field: disk.field, message: `${messageFor(found)}; ${force}` }] : [],
  );
  if (faults.length > 0) return refused('Forbidden', faults);
  const warnings = [...new Set(all.map(({ found }) => messageFor(found)))];
  return warnings.length === 0 ? allowed : { kind: 'allowed', warnings };
};
