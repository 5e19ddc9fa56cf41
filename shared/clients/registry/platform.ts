// Which image of an index is meant. Pure.
import { RegistryFailure } from '#shared/clients/registry/errors.ts';
import type { IndexEntry } from '#shared/clients/registry/manifest.ts';

/** Build tools store provenance and bills of material beside the images, under a platform nobody has. */
const isAttestation = ({ annotations, platform }: IndexEntry): boolean =>
  annotations?.['vnd.docker.reference.type'] !== undefined ||
  platform?.os === 'unknown' ||
  platform?.architecture === 'unknown';

const nameOf = ({ platform }: IndexEntry): string => {
  if (platform === undefined) return 'any';
  const { os = 'any', architecture = 'any', variant } = platform;
  return variant === undefined ? `${os}/${architecture}` : `${os}/${architecture}/${variant}`;
};

/** The plain form of an architecture comes before its variants, and the newest variant before older ones. */
const byVariant = (a: IndexEntry, b: IndexEntry): number => {
  const [left, right] = [a.platform?.variant, b.platform?.variant];
  if (left === undefined || right === undefined) return left === right ? 0 : left === undefined ? -1 : 1;
  return right.localeCompare(left, 'en', { numeric: true });
};

/** What it says of its platform, if anything, leaves open that it is this one. */
const mayBe = (entry: IndexEntry | undefined, wanted: string): boolean => {
  const { os = 'linux', architecture = wanted } = entry?.platform ?? {};
  return os === 'linux' && architecture === wanted;
};

/**
 * The image for a machine of this architecture (`amd64`, `arm64`, …). An index with one image whose platform is left open is that image's. Throws
 * RegistryFailure that lists what there is.
 */
export const selectPlatform = (entries: readonly IndexEntry[], architecture: string, where: string): IndexEntry => {
  const images = entries.filter((entry) => !isAttestation(entry));
  const fitting = images
    .filter(({ platform }) => platform?.architecture === architecture && platform.os === 'linux')
    .sort(byVariant);
  const [only, ...others] = images;
  const isOpen = others.length === 0 && mayBe(only, architecture);
  const chosen = fitting[0] ?? (isOpen ? only : undefined);
  if (chosen !== undefined) return chosen;
  const known = images.length === 0 ? 'nothing' : [...new Set(images.map(nameOf))].join(', ');
  throw new RegistryFailure('PlatformAbsent', `${where} has no image for linux/${architecture}; it has ${known}`);
};
