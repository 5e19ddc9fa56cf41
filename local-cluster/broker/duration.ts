// ISO 8601 durations as DeliverySpec writes them. Called by manifest.ts.

const pattern = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** Milliseconds of a duration such as `PT0.2S` or `PT1H30M`; undefined when it is none. Months and years have no length here. */
export const parseDuration = (text: string): number | undefined => {
  const [, days, hours, minutes, seconds] = pattern.exec(text) ?? [];
  const parts = [days, hours, minutes, seconds];
  if (parts.every((part) => part === undefined)) return undefined;
  const [d, h, m, s] = parts.map((part) => Number(part ?? 0)) as [number, number, number, number];
  return (((d * 24 + h) * 60 + m) * 60 + s) * 1000;
};
