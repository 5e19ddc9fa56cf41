// What a volume is to hold, as far as that is known beforehand, and whether others may be cloned from it (backends/singleflight).
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { labels } from '#shared/api/names.ts';
import { contentOf, fileContent } from '#shared/backends/singleflight/content.ts';
import type { ObservedVolume } from '#shared/resources/volume/observed.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

/** Of an archive there is a disk with the same digest, too: it is not shared. */
export const contentOfVolume = ({ source, checksum, content, holdsFiles }: Volume): string | undefined =>
  holdsFiles === true ? undefined : knownContent({ source, checksum, content });

const knownContent = ({ source, checksum, content }: Pick<Volume, 'source' | 'checksum' | 'content'>) =>
  contentOf({ from: source?.type === 'transfer' ? source.from : undefined, checksum }) ??
  (content && fileContent(content));

/** A version of a cron, or the golden volume of an image: no machine mounts it. */
export const isGolden = ({ claim: { labels: found = {} } }: Volume): boolean =>
  found[cdiLabels.cron] !== undefined || found[labels.role] === 'volume';

/** Label of its claim by which others find the content. */
export const contentMark = (
  volume: Volume,
  { singleflight }: Pick<ObservedVolume, 'singleflight'>,
): string | undefined => (singleflight !== undefined && isGolden(volume) ? singleflight.name : undefined);
