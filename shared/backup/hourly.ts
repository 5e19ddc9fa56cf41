// What is done once an hour, and for each at another minute. Pure.
import { shortHashOf } from '#shared/backup/metadata.ts';

const minutesOfHour = 60;

/**
 * Whether it is this image's minute of the hour, to be held against the target although nothing seems to have changed: another cluster that wrote
 * the same metadata first may have deleted its image, and somebody may have tidied up.
 */
export const isItsMinute = (uid: string, now: number): boolean =>
  Number.parseInt(shortHashOf(uid), 16) % minutesOfHour === Math.floor(now / 60_000) % minutesOfHour;
