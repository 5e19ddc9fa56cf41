// What the words of `bullion bundle save` mean: images of a registry, images of a cluster, and versions of golden images with the objects that offer them.
import { type BundledObject, refusal } from '#cli/bundle/layout.ts';
import type { CronAccess } from '#cli/bundle/access.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { findImage } from '#shared/catalogue/image.ts';
import { targetOf } from '#shared/catalogue/ticket.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Reference, formatReference, isDigest, parseReference } from '#shared/clients/registry/reference.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import { readCronSource } from '#shared/golden/source.ts';
import { InvalidInput, NotFound, isNotFound } from '#shared/runtime/errors.ts';

/** Where the bytes of an image are. */
export type ImageOrigin =
  | {
      readonly is: 'registry';
      readonly image: Reference;
      readonly access: CronAccess;
      readonly architecture?: string | undefined;
      /** Of the index that was signed, perhaps. */
      readonly indexDigest?: string | undefined;
    }
  | { readonly is: 'cluster'; readonly target: TargetName; readonly uid: string };

export interface WantedImage {
  readonly name: string;
  readonly tags: readonly string[];
  readonly from: string;
  readonly origin: ImageOrigin;
  readonly version?: string | undefined;
  readonly dataSources: readonly string[];
  readonly policy?: string | undefined;
  readonly objects: readonly BundledObject[];
}

interface Looking {
  readonly kube: KubeClient;
  readonly namespace: string;
}

const isInRegistry = (word: string): boolean => /^(docker|oci):\/\//.test(word);

const fromRegistry = (word: string): WantedImage => {
  const image = parseReference(word);
  const { repository, tag = 'latest', digest } = image;
  const name = (repository.split('/').at(-1) ?? '').replaceAll(/[^a-z0-9-]+/g, '-');
  const tags = [digest !== undefined && image.tag === undefined ? digest.replace(':', '-') : tag];
  const origin: ImageOrigin = { is: 'registry', image, access: {} };
  return { name, tags, from: `docker://${formatReference(image)}`, origin, dataSources: [], objects: [] };
};

const kept = ['app', 'instancetype.kubevirt.io', 'os', 'template.kubevirt.io'];

/** What its author wrote: what a cluster adds stays behind. */
const withoutCluster = ({ apiVersion, kind, metadata, ...rest }: KubeObject & { readonly spec: object }) => {
  const labels = Object.fromEntries(
    Object.entries(metadata.labels ?? {}).filter(([key]) => kept.some((one) => key.startsWith(one))),
  );
  const named = Object.keys(labels).length === 0 ? { name: metadata.name } : { name: metadata.name, labels };
  return { apiVersion, kind: kind as BundledObject['kind'], metadata: named, spec: { ...rest.spec } };
};

/** Decisions about versions are those of this cluster. */
const policyObject = (policy: GoldenImagePolicy): BundledObject => {
  const { pins: _pins, bad: _bad, approvals: _approvals, deprecated: _deprecated, ...spec } = policy.spec;
  return withoutCluster({ ...policy, spec });
};

const dataSourceObject = (name: string, version: string): BundledObject => ({
  apiVersion: apiVersionOf(dataSourceKind.type),
  kind: 'DataSource',
  metadata: { name },
  spec: { source: { pvc: { name: version } } },
});

interface Version {
  readonly name: string;
  readonly digest: string | undefined;
  readonly cron: DataImportCron;
  /** Of those that are saved: it gets the tag that the cron follows. */
  readonly isNewest: boolean;
  readonly dataSources: readonly string[];
  readonly policy?: GoldenImagePolicy | undefined;
}

const claimOrigin = async ({ kube, namespace }: Looking, name: string): Promise<ImageOrigin> => {
  const found = await kube.get(dataVolumeKind.type, { namespace, name });
  if (found === undefined)
    throw new NotFound(
      `datavolume ${name} in namespace ${namespace} does not exist: only its snapshot is left, perhaps`,
    );
  return { is: 'cluster', target: { plural: 'datavolumes', namespace, name }, uid: found.metadata.uid ?? '' };
};

/** What the cron's source named when it led to the version. */
const indexOf = ({ status = {} }: DataImportCron, digest: string): string | undefined => {
  const { currentImports = [], lastPoll } = status;
  const isCurrent = currentImports.at(-1)?.Digest === digest;
  return isCurrent && lastPoll?.sourceDigest !== digest ? lastPoll?.sourceDigest : undefined;
};

const originOf = async (looking: Looking, version: Version): Promise<ImageOrigin> => {
  const { digest = '', cron, name } = version;
  const read = readCronSource(cron.spec);
  const source = 'value' in read ? read.value : undefined;
  if (source?.type !== 'registry' || !isDigest(digest)) return claimOrigin(looking, name);
  const { image, secretName, caName, architecture } = source;
  const { host, repository } = image;
  const indexDigest = indexOf(cron, digest);
  return {
    is: 'registry',
    image: { host, repository, digest },
    access: { secretName, caName },
    architecture,
    indexDigest,
  };
};

/** The tag that the cron follows leads to this version on the other side, too. */
const tagOf = ({ spec, status }: DataImportCron): string => {
  const read = readCronSource(spec);
  const tag = 'value' in read && read.value.type === 'registry' ? read.value.image.tag : undefined;
  return tag ?? status?.lastPoll?.tag ?? 'latest';
};

const wantedVersion = async (looking: Looking, version: Version): Promise<WantedImage> => {
  const { name, cron, policy, dataSources } = version;
  const origin = await originOf(looking, version);
  const golden = policy?.metadata.name ?? cron.spec.managedDataSource;
  const from = origin.is === 'registry' ? `docker://${formatReference(origin.image)}` : `datavolume ${name}`;
  return {
    name: golden,
    tags: [name.slice(0, 128), ...(version.isNewest ? [tagOf(cron)] : [])],
    from,
    origin,
    version: name,
    dataSources,
    policy: policy?.metadata.name,
    objects: [
      ...dataSources.map((one) => dataSourceObject(one, name)),
      withoutCluster(cron),
      ...(policy === undefined ? [] : [policyObject(policy)]),
    ],
  };
};

const cronNamed = async ({ kube, namespace }: Looking, name: string): Promise<DataImportCron> => {
  const found = await kube.get(dataImportCronKind.type, { namespace, name });
  if (found === undefined) throw new NotFound(`dataimportcron ${name} in namespace ${namespace} does not exist`);
  return found;
};

const versionsOfPolicy = async (looking: Looking, policy: GoldenImagePolicy, channel: string | undefined) => {
  const { channels = [], versions = [] } = policy.status ?? {};
  const asked = channels.filter(({ name }) => channel === undefined || name === channel);
  if (asked.length === 0) {
    const known = policy.spec.channels.map(({ name }) => name).join(', ');
    throw new NotFound(`policy ${policy.metadata.name} has no channel ${channel ?? ''}: it has ${known}`);
  }
  const found: Version[] = [];
  for (const { name, version } of asked) {
    const status = versions.find((one) => one.name === version);
    if (status === undefined) {
      if (channel === undefined) continue;
      throw refusal(
        `channel ${name} of ${policy.metadata.name} has no version yet: bullion why gip/${policy.metadata.name}`,
      );
    }
    const dataSources = asked.filter((one) => one.version === version).map(({ dataSource }) => dataSource);
    if (found.some((one) => one.name === version)) continue;
    const cron = await cronNamed(looking, status.cron);
    found.push({ name: status.name, digest: status.digest, cron, isNewest: false, dataSources, policy });
  }
  const newest = versions.findLast((one) => found.some(({ name }) => name === one.name))?.name;
  return found.map((one) => ({ ...one, isNewest: one.name === newest }));
};

const versionOfCron = (cron: DataImportCron): Version => {
  const name = cron.status?.lastImportedPVC?.name;
  if (name === undefined) throw refusal(`dataimportcron ${cron.metadata.name} has imported no version yet`);
  const current = cron.status?.currentImports?.find(({ DataVolumeName }) => DataVolumeName === name);
  return { name, digest: current?.Digest, cron, isNewest: true, dataSources: [cron.spec.managedDataSource] };
};

/** A cron of the name, or the one that moves the DataSource of the name. */
const cronOf = async ({ kube, namespace }: Looking, name: string): Promise<DataImportCron | undefined> => {
  const own = await kube.get(dataImportCronKind.type, { namespace, name });
  if (own !== undefined) return own;
  const source = await kube.get(dataSourceKind.type, { namespace, name });
  const cron = source?.metadata.labels?.[cdiLabels.cron];
  return cron === undefined ? undefined : kube.get(dataImportCronKind.type, { namespace, name: cron });
};

const imageNamed = async ({ kube, namespace }: Looking, word: string): Promise<WantedImage | undefined> => {
  const found = await tolerate(findImage(kube, namespace, word), isNotFound);
  if (found === undefined) return undefined;
  const { name, uid = '' } = found.image.metadata;
  const origin: ImageOrigin = { is: 'cluster', target: targetOf(found), uid };
  return { name, tags: ['latest'], from: `image ${word}`, origin, dataSources: [], objects: [] };
};

const resolve = async (looking: Looking, word: string): Promise<readonly WantedImage[]> => {
  if (isInRegistry(word)) return [fromRegistry(word)];
  const [name = '', channel, ...more] = word.split('@');
  if (more.length > 0 || name === '' || channel === '')
    throw new InvalidInput(`${word} is not an image: write <image>, <policy>@<channel> or docker://…`);
  const image = channel === undefined ? await imageNamed(looking, name) : undefined;
  if (image !== undefined) return [image];
  const { kube, namespace } = looking;
  const policy = await kube.get(goldenImagePolicyKind.type, { namespace, name });
  if (policy !== undefined) {
    const versions = await versionsOfPolicy(looking, policy, channel);
    return Promise.all(versions.map((version) => wantedVersion(looking, version)));
  }
  const cron = channel === undefined ? await cronOf(looking, name) : undefined;
  if (cron !== undefined) return [await wantedVersion(looking, versionOfCron(cron))];
  const what =
    channel === undefined ? 'image, GoldenImagePolicy, DataImportCron or managed DataSource' : 'GoldenImagePolicy';
  throw new NotFound(`there is no ${what} ${name} in namespace ${namespace}`);
};

const orderOf = ({ name, version = '', tags }: WantedImage): string => `${name} ${version} ${tags.join(' ')}`;

/** In an order of their own, so that the same images make the same bundle however they were named. */
export const findWanted = async (looking: Looking, words: readonly string[]): Promise<readonly WantedImage[]> => {
  const found = new Map<string, WantedImage>();
  for (const word of words)
    for (const wanted of await resolve(looking, word)) {
      const key = `${wanted.name} ${wanted.from}`;
      const before = found.get(key);
      // Two channels may have one version.
      const merged = before === undefined ? wanted : merge(before, wanted);
      found.set(key, merged);
    }
  const all = [...found.values()].toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  requireDistinct(all);
  return all;
};

/** Below one tag there is one image. */
const requireDistinct = (all: readonly WantedImage[]): void => {
  const seen = new Map<string, string>();
  for (const { name, tags, from } of all)
    for (const tag of tags) {
      const other = seen.get(`${name}:${tag}`);
      if (other !== undefined)
        throw new InvalidInput(`${other} and ${from} would both be ${name}:${tag} in the bundle: save them in two`);
      seen.set(`${name}:${tag}`, from);
    }
};

const merge = (one: WantedImage, other: WantedImage): WantedImage => ({
  ...one,
  tags: [...new Set([...one.tags, ...other.tags])],
  dataSources: [...new Set([...one.dataSources, ...other.dataSources])].toSorted(),
  objects: [...one.objects, ...other.objects],
});
