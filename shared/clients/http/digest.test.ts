import { describe, expect, it } from 'vitest';
import { statedDigest } from '#shared/clients/http/digest.ts';

const hex = 'c1'.repeat(32);
const base64 = Buffer.from(hex, 'hex').toString('base64');

describe('the digest a server states', () => {
  it.each<[string, Record<string, string>, string | undefined]>([
    ['of RFC 9530', { 'repr-digest': `sha-512=:AAAA:, sha-256=:${base64}:` }, `sha256:${hex}`],
    ['of RFC 3230', { digest: `md5=AAAA, SHA-256=${base64}` }, `sha256:${hex}`],
    ['of a repository of artifacts', { 'x-checksum-sha256': hex.toUpperCase() }, `sha256:${hex}`],
    ['of an object in one piece', { 'x-amz-checksum-sha256': base64 }, `sha256:${hex}`],
    ['of an object in parts', { 'x-amz-checksum-sha256': `${base64}-3` }, undefined],
    ['of an encoding', { 'content-encoding': 'gzip', digest: `sha-256=${base64}` }, undefined],
    ['that is too short', { digest: 'sha-256=AAAA' }, undefined],
    ['of another algorithm', { digest: `sha-512=${base64}` }, undefined],
    ['nowhere', { etag: '"1"' }, undefined],
  ])('%s', (_where, headers, digest) => {
    expect(statedDigest(headers)).toBe(digest);
  });
});
