// Versions of files whose digest nobody tells before they are fetched. They are imported under a name made of what their server tells (ETag, date,
// version), and then named by the digest of the bytes: by a copy within the storage, after which what was imported goes. Pure.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { Action } from '#shared/populate/actions.ts';
import { contentName, fileContent } from '#shared/populate/singleflight/read.ts';
import { isValidator } from '#shared/golden/version.ts';
import { removeVersion } from '#shared/resources/data-import-cron/collect.ts';
import {
  type CronResource,
  type NamedVersion,
  askedOf,
  type ObservedCron,
  type ObservedVersion,
} from '#shared/resources/data-import-cron/cron.ts';
import { sharedContent } from '#shared/resources/data-import-cron/template.ts';
import { classOf, verifiedDigest } from '#shared/resources/data-import-cron/version.ts';

type Named = Pick<ObservedCron, 'versions'>;

/** Name under which the file was fetched. */
const provisionalName = ({ targets }: CronResource): string => targets.at(-1) ?? '';

/** The version that one under its own name is copied from, and its digest; `undefined` where bytes are fetched. */
export const copiedFrom = (
  cron: CronResource,
  { versions }: Named,
  name: string,
): { readonly name: string; readonly digest: string } | undefined => {
  const from = provisionalName(cron);
  const digest = isValidator(cron.digest) && name !== from ? verifiedDigest(versions.get(from)) : undefined;
  return digest === undefined ? undefined : { name: from, digest };
};

/** What the version of this name is known to hold, or what stands for that. */
export const digestOf = (cron: CronResource, observed: Named, name: string): Omit<NamedVersion, 'name'> => {
  if (!isValidator(cron.digest) || name === provisionalName(cron)) return { digest: cron.digest };
  const { current } = cron.state;
  const known = current?.name === name && askedOf(current) === cron.digest ? current.digest : undefined;
  const digest = copiedFrom(cron, observed, name)?.digest ?? verifiedDigest(observed.versions.get(name)) ?? known;
  return digest === undefined ? { digest: cron.digest } : { digest, validator: cron.digest };
};

const isProvisional = ({ dataVolume }: ObservedVersion): boolean =>
  isValidator(dataVolume?.metadata.annotations?.[annotations.content] ?? '');

/** What was fetched goes once it is there under its own name, and so does what newer ones overtook on the way to theirs. */
export const dropProvisional = (
  cron: CronResource,
  { versions, inUse }: ObservedCron,
  name: string,
): readonly Action[] => {
  if (!isValidator(cron.digest) || name === provisionalName(cron)) return [];
  const isKept = (other: string): boolean => other === name || other === cron.state.offered || inUse.has(other);
  return [...versions].flatMap(([other, version]) =>
    isProvisional(version) && !isKept(other) ? removeVersion(version) : [],
  );
};

/** Place of a version: its volume says it, or the cron noted it. */
const placeOf = ({ object }: CronResource, { storageClass }: Placing, { volume }: ObservedVersion): string =>
  classOf({ volume }) ??
  object.metadata.annotations?.[cdiAnnotations.storageClass] ??
  storageClass?.metadata.name ??
  '';

type Placing = Pick<ObservedCron, 'storageClass'>;

/**
 * Whoever comes to ask the same of the same source finds the version by what it is told, without fetching it to find out. What a source tells of the same
 * bytes may change: the newest counts. For volume and snapshot of a version.
 */
export const askedMark = (
  cron: CronResource,
  observed: Placing,
  version: ObservedVersion,
): Readonly<Record<string, string>> => {
  if (!isValidator(cron.digest)) return {};
  const asked = contentName(fileContent(sharedContent(cron, cron.digest)), placeOf(cron, observed, version));
  const { labels: found = {} } = (version.volume ?? version.snapshot)?.metadata ?? {};
  return found[labels.content] === asked ? {} : { [labels.askedContent]: asked };
};
