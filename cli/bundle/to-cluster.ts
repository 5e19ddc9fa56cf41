// Brings the disks of a bundle into a cluster by uploads, as anybody would: the cluster compares each file before it has a disk of it, and a DataSource
// points to a version only then. Whether all of it is possible is checked first.
import { type ReadBundle, requireNames } from '#cli/bundle/check.ts';
import { diskStream } from '#cli/bundle/disk-bytes.ts';
import { clusterDigests } from '#cli/bundle/have.ts';
import type { BundledImage, Disk } from '#cli/bundle/layout.ts';
import { type Call, textOf } from '#cli/command.ts';
import { type Connection, openConnection } from '#cli/exchange/answer.ts';
import { sendFile } from '#cli/exchange/send.ts';
import { type Line, countBytes } from '#cli/line.ts';
import { ensureImage, ensureVolume, untilPhase } from '#cli/upload.ts';
import { waitUntilOver } from '#cli/wait.ts';
import { exitCodes } from '#cli/command.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { type AnyImage, imageTypes } from '#shared/catalogue/image.ts';
import { getTicket, isForUploads } from '#shared/catalogue/ticket.ts';
import { lookAhead } from '#shared/exchange/upload/look-ahead.ts';
import { populationOf } from '#shared/populate/population.ts';
import { InvalidInput, Unavailable } from '#shared/runtime/errors.ts';

/** What the cluster has of one image. */
export interface ImageStanding {
  readonly image: BundledImage;
  /** Of the version. */
  readonly volume: DataVolume | undefined;
  /** sha256 of the file that its claim was filled from. */
  readonly filledFrom: string | undefined;
  readonly golden: AnyImage | undefined;
  readonly dataSources: readonly DataSource[];
}

const filledFromOf = async ({ kube, namespace }: Call, claim: string | undefined): Promise<string | undefined> => {
  if (claim === undefined) return undefined;
  return populationOf(await kube.get(persistentVolumeClaims, { namespace, name: claim }))?.digests['sha256'];
};

const observe = async (call: Call, image: BundledImage): Promise<ImageStanding> => {
  const { kube, namespace } = call;
  const { name, version } = image;
  const dataSources: DataSource[] = [];
  for (const one of image.dataSources) {
    const found = await kube.get(dataSourceKind.type, { namespace, name: one });
    if (found !== undefined) dataSources.push(found);
  }
  const common = { image, dataSources };
  if (version === undefined) {
    const golden = await kube.get(imageTypes.harvester, { namespace, name });
    return {
      ...common,
      volume: undefined,
      golden,
      filledFrom: await filledFromOf(call, golden?.status?.children?.volume),
    };
  }
  const volume = await kube.get(dataVolumeKind.type, { namespace, name: version });
  return { ...common, volume, golden: undefined, filledFrom: await filledFromOf(call, version) };
};

export type LoadStep =
  | { readonly is: 'present' }
  | { readonly is: 'upload'; readonly disk: Disk }
  | { readonly is: 'refused'; readonly why: string };

const refuse = (why: string): LoadStep => ({ is: 'refused', why });

const isMoved = ({ metadata }: DataSource): boolean =>
  metadata.labels?.[cdiLabels.cron] !== undefined || metadata.labels?.[labels.policy] !== undefined;

const isWhole = ({ volume, filledFrom }: ImageStanding): boolean =>
  filledFrom !== undefined && (volume === undefined || volume.status?.phase === 'Succeeded');

/** Pure. Of a disk that the cluster has: whether it is this one. `digests`: what the namespace has. */
const compare = ({ image, filledFrom }: ImageStanding, digests: ReadonlySet<string>): LoadStep => {
  const { name, version, disk, digest } = image;
  const isThis = disk === undefined ? digests.has(digest) : filledFrom === disk.sha256;
  return isThis
    ? { is: 'present' }
    : refuse(`${version ?? name} is here already, with another disk (sha256 ${filledFrom})`);
};

/** Pure. */
export const stepFor = (standing: ImageStanding, digests: ReadonlySet<string>): LoadStep => {
  const { image, volume, golden, dataSources } = standing;
  const { version, disk, leftOut, name } = image;
  const moved = dataSources.find(isMoved)?.metadata.name;
  if (moved !== undefined)
    return refuse(
      `datasource ${moved} is moved by a cron or a policy here: load the bundle into the registry that it follows (--to oci://…)`,
    );
  if (isWhole(standing)) return compare(standing, digests);
  if (disk === undefined || leftOut.includes(disk.layer))
    return refuse(`the bundle leaves out the disk of ${version ?? name}, and it is not here`);
  if (volume !== undefined && volume.spec.source?.upload === undefined)
    return refuse(`datavolume ${version} is here already, and is not filled by an upload`);
  if (golden !== undefined && !isForUploads(golden))
    return refuse(`image ${name} is here already, and is not filled by an upload`);
  return { is: 'upload', disk };
};

interface Work {
  readonly bundle: ReadBundle;
  readonly line: Line;
  readonly connection: Connection;
  readonly timeoutMs: number | undefined;
}

/** A DataVolume has one MiB at least. */
const leastVolume = 2 ** 20;

/** Bytes of the disk in a file, where its beginning tells. */
const virtualSizeOf = async (
  call: Call,
  bundle: ReadBundle,
  image: BundledImage,
  { size }: Disk,
): Promise<number | undefined> => {
  const { inspection, stream } = await lookAhead(diskStream(bundle, image, 0, call.signal), size);
  stream.destroy();
  return inspection.virtualSize;
};

const send = async (call: Call, { bundle, line, connection, timeoutMs }: Work, image: BundledImage, disk: Disk) => {
  const { kube, bearer, namespace, values, signal } = call;
  const { name, version } = image;
  const virtualSize = await virtualSizeOf(call, bundle, image, disk);
  const golden = version === undefined ? await ensureImage(call, name) : undefined;
  if (version !== undefined) {
    await ensureVolume(call, version, Math.max(virtualSize ?? disk.size, leastVolume));
    await untilPhase(call, version, { phases: ['UploadReady', 'Succeeded', 'Failed'], line, patienceMs: timeoutMs });
  }
  const plural = version === undefined ? 'virtualmachineimages' : 'datavolumes';
  const shown = version ?? name;
  await sendFile({
    file: `${bundle.archive.path} (${shown})`,
    read: (start) => diskStream(bundle, image, start, signal),
    size: disk.size,
    checksum: `sha256:${disk.sha256}`,
    virtualSize,
    signal,
    tries: 8,
    patienceMs: timeoutMs,
    connection,
    getTicket: () =>
      getTicket({
        kube,
        bearer,
        operation: 'upload',
        target: { plural, namespace, name: shown },
        server: textOf(values, 'transfer-url'),
      }),
    onRetry: (why, seconds) => line.show(`${shown}: ${why}; retrying in ${seconds} s`),
    onProgress: (sent) => countBytes(line, `uploading ${shown}`, sent, disk.size),
  });
  return golden;
};

const untilThere = async (call: Call, work: Work, image: BundledImage, golden: AnyImage | undefined): Promise<void> => {
  const { kube, terminal, signal } = call;
  const { line, timeoutMs } = work;
  if (image.version === undefined) {
    line.end();
    const found = { type: imageTypes.harvester, image: golden ?? (await ensureImage(call, image.name)) };
    const code = await waitUntilOver({ kube, terminal, signal, timeoutMs }, found);
    if (code !== exitCodes.done) throw new Unavailable(`image ${image.name} is not ready: bullion why ${image.name}`);
    return;
  }
  const volume = await untilPhase(call, image.version, {
    phases: ['Succeeded', 'Failed'],
    line,
    patienceMs: timeoutMs,
  });
  if (volume.status?.phase === 'Succeeded') return;
  const message = volume.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
  throw new Unavailable(`datavolume ${image.version} failed: ${message}`);
};

/** Only what points elsewhere is changed. */
const point = async ({ kube, namespace }: Call, name: string, version: string): Promise<void> => {
  const { type } = dataSourceKind;
  const source = { pvc: { namespace, name: version } };
  const found = await kube.get(type, { namespace, name });
  if (found === undefined) {
    const apiVersion = apiVersionOf(type);
    await kube.create(type, { apiVersion, kind: 'DataSource', metadata: { name, namespace }, spec: { source } });
  } else if (found.spec.source.pvc?.name !== version) {
    const { resourceVersion = '' } = found.metadata;
    const spec = { source: { pvc: source.pvc, snapshot: null, dataSource: null } };
    await kube.mergePatch(type, { namespace, name }, { metadata: { resourceVersion }, spec });
  }
};

const planAll = async (
  call: Call,
  { document }: ReadBundle,
): Promise<readonly (readonly [BundledImage, LoadStep])[]> => {
  const digests = await clusterDigests(call.kube, call.namespace);
  const steps: (readonly [BundledImage, LoadStep])[] = [];
  for (const image of document.images) steps.push([image, stepFor(await observe(call, image), digests)]);
  const faults = steps.flatMap(([{ name }, step]) =>
    step.is === 'refused' ? [{ field: name, message: step.why }] : [],
  );
  const [first] = faults;
  if (first !== undefined) throw new InvalidInput(`nothing was loaded: ${first.message}`, faults);
  return steps;
};

/** Returns what was made, as `<kind>/<name>`. Throws an AppError; another load resumes where this one ended. */
export const loadToCluster = async (call: Call, work: Omit<Work, 'connection'>): Promise<readonly string[]> => {
  requireNames(work.bundle, ({ name, version }) => version ?? name);
  const steps = await planAll(call, work.bundle);
  const connection = await openConnection(call.values);
  const made: string[] = [];
  try {
    for (const [image, step] of steps) {
      const { name, version, dataSources } = image;
      if (step.is === 'upload') {
        const golden = await send(call, { ...work, connection }, image, step.disk);
        await untilThere(call, { ...work, connection }, image, golden);
      }
      made.push(version === undefined ? `virtualmachineimage/${name}` : `datavolume/${version}`);
      for (const one of version === undefined ? [] : dataSources) {
        await point(call, one, version ?? '');
        made.push(`datasource/${one}`);
      }
    }
    return made;
  } finally {
    await connection.close();
  }
};
