// `objectStore` of HyperCloud's kinds: an object of the configured store. Called by their rules.
import { faultIf } from '#shared/resources/rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Names that every store supports; some support more, but not everywhere. */
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
