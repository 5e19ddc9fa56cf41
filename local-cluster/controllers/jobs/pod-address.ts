// The address of a pod: one of loopback's, so that pods which listen on the same port do not meet. Pure.
import { createHash } from 'node:crypto';
import type { Pod } from '#shared/api/foreign/core.ts';

/** Only Linux answers for all of 127.0.0.0/8: elsewhere pods share one address, and one of them at a time can listen. */
const hasWideLoopback = process.platform === 'linux';

/** The same for the life of a pod: from its UID, in 127.64.0.0/10. */
export const podAddressOf = ({ metadata: { uid = '' } }: Pod): string => {
  if (!hasWideLoopback) return '127.0.0.1';
  const [a = 0, b = 0, c = 0] = createHash('sha256').update(uid).digest();
  return `127.${64 + (a % 64)}.${b}.${1 + (c % 254)}`;
};
