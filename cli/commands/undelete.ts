// `bullion undelete`: versions and images that were deleted, by retention or by hand, and can be brought back with their bytes.
import { type Call, type ClusterCommand, type ExitCode, exitCodes } from '#cli/command.ts';
import { counted, screenOf, tableOf } from '#cli/output.ts';
import { groupOf, imageTypes } from '#shared/catalogue/image.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf, groupKindOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import { listHolders } from '#shared/resources/deleted-images/keep.ts';
import { imageFrom, imageOfHolder } from '#shared/resources/deleted-images/record.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { InvalidInput, NotFound, isConflict } from '#shared/runtime/errors.ts';

export interface DeletedVersion {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly cron: string;
  readonly time: string;
  /** Left out: as long as its policy says. */
  readonly until?: string;
  readonly bytes?: number | undefined;
}

export const byHandIn = (crons: readonly DataImportCron[]): readonly DeletedVersion[] =>
  crons.flatMap(({ metadata: { namespace, name: cron }, status }) =>
    (status?.deleted ?? []).map((one): DeletedVersion => ({ namespace, cron, ...one })),
  );

const byRetentionIn = async (kube: KubeClient, options: ListOptions): Promise<readonly DeletedVersion[]> => {
  const found = new Map<string, DeletedVersion>();
  for (const form of forms)
    for (const { metadata } of await allIfServed(kube, form, { ...options, labelSelector: cdiLabels.cron })) {
      const time = metadata.annotations?.[annotations.deleted];
      const { namespace, name } = metadata;
      const cron = metadata.labels?.[cdiLabels.cron] ?? '';
      if (time !== undefined) found.set(`${namespace}/${name}`, { namespace, name, cron, time });
    }
  return [...found.values()];
};

const forms: readonly ResourceType[] = [persistentVolumeClaims, volumeSnapshots];

/** An image by itself, and the object that holds its bytes. */
interface DeletedImage {
  readonly type: ResourceType;
  /** `harvester/jammy`. */
  readonly wanted: string;
  readonly holder: KubeObject;
  readonly kept: NonNullable<ReturnType<typeof imageOfHolder>>;
}

const imagesIn = async (kube: KubeClient, namespace: string | undefined): Promise<readonly DeletedImage[]> => {
  const found = (await listHolders(kube, namespace)).flatMap(({ object }): readonly DeletedImage[] => {
    const kept = imageOfHolder(object);
    const type = Object.values(imageTypes).find(
      (one) => kept?.groupKind === groupKindOf({ apiVersion: apiVersionOf(one), kind: one.kind }),
    );
    if (kept === undefined || type === undefined) return [];
    const wanted = `${groupOf({ type, image: object })}/${kept.name}`;
    return [{ type: type as ResourceType, wanted, holder: object, kept }];
  });
  const here = found.filter(({ kept }) => namespace === undefined || kept.namespace === namespace);
  return here.toSorted((a, b) => b.kept.record.deleted.localeCompare(a.kept.record.deleted));
};

const showImages = (call: Call, images: readonly DeletedImage[]): string => {
  const now = call.terminal.now();
  return tableOf(
    ['NAMESPACE', 'IMAGE', 'DELETED', 'SIZE', 'GOES'],
    images.map(({ wanted, kept: { namespace, record } }) => [
      namespace,
      wanted,
      `${toAge(record.deleted, now)} ago`,
      record.bytes === undefined ? undefined : formatBytes(record.bytes),
      `in ${toSpan(Math.max(0, Date.parse(record.until) - now.getTime()))}`,
    ]),
    screenOf(call),
  );
};

/** Under the rights of who asks: the image as it was, which takes its bytes. */
const restore = async ({ kube, namespace, terminal }: Call, wanted: string): Promise<ExitCode> => {
  const [image] = (await imagesIn(kube, namespace)).filter((one) => one.wanted === wanted);
  if (image === undefined)
    throw new NotFound(
      `there is no deleted image ${wanted} in namespace ${namespace} that can be brought back: bullion undelete lists them`,
    );
  try {
    await kube.create(image.type, imageFrom(image.kept, image.type, image.holder));
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new InvalidInput(`there is an image ${wanted} already: delete it first, or leave the deleted one`);
  }
  terminal.out(`${wanted} is being brought back: bullion why ${wanted} -n ${namespace}\n`);
  return exitCodes.done;
};

const showDeleted = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, values, terminal } = call;
  const options = values['all-namespaces'] === true ? {} : { namespace };
  const crons = await allIfServed(kube, dataImportCronKind.type, options);
  const all = [...byHandIn(crons), ...(await byRetentionIn(kube, options))];
  const now = terminal.now();
  const table = tableOf(
    ['NAMESPACE', 'VERSION', 'CRON', 'DELETED', 'SIZE', 'GOES'],
    all.map((one) => [
      one.namespace,
      one.name,
      one.cron,
      `${toAge(one.time, now)} ago`,
      one.bytes === undefined ? undefined : formatBytes(one.bytes),
      one.until === undefined ? 'by retention' : `in ${toSpan(Date.parse(one.until) - now.getTime())}`,
    ]),
    screenOf(call),
  );
  if (all.length > 0) terminal.out(table);
  const images = await imagesIn(kube, values['all-namespaces'] === true ? undefined : namespace);
  if (images.length > 0) terminal.out(`${all.length > 0 ? '\n' : ''}${showImages(call, images)}`);
  terminal.err(`${counted(all.length, 'version')} and ${counted(images.length, 'image')} can be brought back\n`);
  return exitCodes.done;
};

/** One patch for the claim and one for the snapshot. Bringing a version back counts as using it. */
const unmark = async ({ kube, namespace, terminal }: Call, name: string): Promise<boolean> => {
  const annotate = { [annotations.deleted]: null, [cdiAnnotations.lastUseTime]: terminal.now().toISOString() };
  let found = 0;
  for (const form of forms) {
    const object = await kube.get(form, { namespace, name });
    if (object?.metadata.annotations?.[annotations.deleted] === undefined) continue;
    found += 1;
    await kube.mergePatch(form, { namespace, name }, { metadata: { annotations: annotate } });
  }
  return found > 0;
};

/** Its cron makes claim and snapshot anew, from storage that only functions may touch. */
const ask = async ({ kube, namespace, terminal }: Call, name: string): Promise<boolean> => {
  const crons = await allIfServed(kube, dataImportCronKind.type, { namespace });
  const cron = crons.find(({ status }) => status?.deleted?.some((one) => one.name === name));
  if (cron === undefined) return false;
  const { resourceVersion, annotations: notes = {}, name: of } = cron.metadata;
  const wanted = new Set([...(notes[annotations.undelete] ?? '').split(',').filter((one) => one !== ''), name]);
  const metadata = { resourceVersion, annotations: { [annotations.undelete]: [...wanted].join(',') } };
  await kube.mergePatch(dataImportCronKind.type, { namespace, name: of }, { metadata });
  terminal.out(`${name} is being brought back: bullion why dic/${of} -n ${namespace}\n`);
  return true;
};

const undelete = async (call: Call): Promise<ExitCode> => {
  const { namespace, positionals, terminal } = call;
  const [name] = positionals;
  if (name === undefined) return showDeleted(call);
  if (name.includes('/')) return restore(call, name);
  if (await unmark(call, name)) {
    terminal.out(`${name} is kept as if a disk had been made from it now; lock or pin it to keep it longer\n`);
    return exitCodes.done;
  }
  if (await ask(call, name)) return exitCodes.done;
  throw new NotFound(
    `there is no version ${name} in namespace ${namespace} that can be brought back: bullion undelete lists them`,
  );
};

export const undeleteCommand: ClusterCommand = {
  name: 'undelete',
  arguments: '[name]',
  summary:
    'Restores a deleted version of a golden image, or a deleted image, with its bytes; without an argument, lists them.',
  more: 'Within spec.retention.undeleteFor of its GoldenImagePolicy. Requires permission to patch its claim or snapshot, or its DataImportCron if those are gone.\nAn image within the time in its annotation bullion.dev/undelete-for. Requires permission to list what holds its bytes (claims, data volumes; for backend backingimage the backing images of Longhorn), and to create it.\n\n  bullion undelete\n  bullion undelete fedora-9ab6e2a1c1f0\n  bullion undelete harvester/jammy',
  options: { 'all-namespaces': { type: 'boolean', short: 'A', help: 'list those of every namespace' } },
  run: undelete,
};
