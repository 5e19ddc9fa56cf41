// `objectStore` of HyperCloud's kinds: an object of the store the installation is configured with. Called by their rules.
import { faultIf } from '#shared/resources/rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** What every store takes; some take more, and then only some of the time. */
const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const mostKeyBytes = 1024;

export const storedObjectFaults = (
  { bucketName, objectName }: { readonly bucketName: string; readonly objectName: string },
  field: string,
): readonly Fault[] => {
  const bytes = Buffer.byteLength(objectName);
  return [
    ...faultIf(
      !bucketPattern.test(bucketName),
      `${field}.bucketName`,
      'is not a valid bucket name: 3 to 63 lower-case letters, digits, dots and dashes',
    ),
    ...faultIf(bytes === 0 || bytes > mostKeyBytes, `${field}.objectName`, `must have 1 to ${mostKeyBytes} bytes`),
  ];
};
