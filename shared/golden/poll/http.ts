// Asks a web server whether a file changed: by its checksum file, or by validators in a conditional request. Called by observe.ts.
import type { HostHealth } from '#shared/clients/http/health.ts';
import { type PlacedAnswer, askPlaces } from '#shared/clients/http/mirrored.ts';
import { type MirrorAccess, mirrorsOf } from '#shared/clients/http/mirrors.ts';
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { type Destination, toDestination } from '#shared/clients/http/redirect.ts';
import { statedDigest } from '#shared/clients/http/digest.ts';
import { parseRetryAfter } from '#shared/clients/http/refusal.ts';
import { readUpTo } from '#shared/runtime/read-bytes.ts';
import { findChecksum } from '#shared/golden/checksums.ts';
import type { Validators, Observation } from '#shared/golden/poll/observation.ts';
import type { HttpCronSource } from '#shared/golden/source.ts';
import { validatorDigest } from '#shared/golden/version.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

export interface HttpPoll {
  readonly client: HttpClient;
  readonly access: MirrorAccess;
  readonly health: HostHealth;
  /** Headers for the origin of the file alone. */
  readonly secretHeaders: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
}

/** A file of checksums is small. */
const mostBytes = 4 * 1024 * 1024;

/** Throws HttpFailure. */
export const pollHttp = (poll: HttpPoll, source: HttpCronSource, known: Validators): Promise<Observation> =>
  source.checksumUrl === undefined ? byValidator(poll, source, known) : byChecksum(poll, source, source.checksumUrl);

const ask = async (
  poll: HttpPoll,
  origin: Destination,
  method: 'GET' | 'HEAD',
  headers: Readonly<Record<string, string>> = {},
): Promise<PlacedAnswer> => {
  const signal = poll.signal === undefined ? {} : { signal: poll.signal };
  const mirrors = mirrorsOf(origin.url, poll.access);
  return askPlaces(poll.client, { origin, method, headers, mirrors, health: poll.health, ...signal });
};

/** The answer of a mirror is about the file all the same. */
const nameOf = (url: string, { from }: PlacedAnswer): string =>
  from === undefined || from === redactUrl(url) ? redactUrl(url) : `${redactUrl(url)} (at ${from})`;

const refused = ({ now }: HttpPoll, { status, headers }: HttpResponse, where: string): Observation => {
  const retryAfterSeconds = parseRetryAfter(headers['retry-after'], now());
  const reason =
    status === 404 || status === 410
      ? 'FileNotFound'
      : status === 401 || status === 403
        ? 'Unauthorized'
        : status === 429 || status === 503
          ? 'RateLimited'
          : 'ServerRefused';
  return { is: 'failed', reason, message: `${where} answered ${status}`, retryAfterSeconds };
};

const byChecksum = async (poll: HttpPoll, source: HttpCronSource, checksumUrl: string): Promise<Observation> => {
  const [file, sums] = [new URL(source.url), new URL(checksumUrl)];
  // Credentials are for the file's origin; the checksums may lie elsewhere.
  const destination = toDestination(sums, sums.origin === file.origin ? poll.secretHeaders : {});
  const answer = await ask(poll, destination, 'GET');
  const { response } = answer;
  const where = nameOf(checksumUrl, answer);
  if (response.status !== 200) {
    response.discard();
    return refused(poll, response, where);
  }
  const fileName = decodeURIComponent(file.pathname.split('/').at(-1) ?? '');
  const { bytes } = await readUpTo(response.body, mostBytes);
  const found = findChecksum(bytes.toString('utf8'), fileName);
  if ('problem' in found) return { is: 'failed', reason: 'ChecksumMissing', message: `${where} ${found.problem}` };
  return { is: 'found', digest: found.digest, message: `${where} says ${found.digest}`, memory: {} };
};

const conditionsOf = ({ etag, lastModified }: Validators): Readonly<Record<string, string>> => ({
  ...(etag === undefined ? {} : { 'if-none-match': etag }),
  ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
});

/** Servers that know no HEAD are asked to begin sending, and hung up on. */
const noHead = new Set([400, 403, 405, 501]);

const byValidator = async (poll: HttpPoll, source: HttpCronSource, known: Validators): Promise<Observation> => {
  const origin = toDestination(new URL(source.url), poll.secretHeaders);
  let answer = await ask(poll, origin, 'HEAD', conditionsOf(known));
  answer.response.discard();
  if (noHead.has(answer.response.status)) {
    answer = await ask(poll, origin, 'GET', conditionsOf(known));
    answer.response.discard();
  }
  const { response } = answer;
  const where = nameOf(source.url, answer);
  if (response.status === 304) return { is: 'same', message: `${where} answered 304: not modified` };
  if (response.status !== 200) return refused(poll, response, where);
  return toObservation(response, known, { url: source.url, where });
};

interface Named {
  readonly url: string;
  readonly where: string;
}

const toObservation = ({ headers }: HttpResponse, known: Validators, { url, where }: Named): Observation => {
  const etag = headers['etag'];
  const lastModified = headers['last-modified'];
  const version = headers['x-amz-version-id'];
  const memory = { etag, lastModified };
  const strongTag = etag?.replace(/^W\//, '');
  if (etag !== undefined && etag === known.etag) return { is: 'same', message: `${where} still has ETag ${etag}` };
  const stated = statedDigest(headers);
  if (stated !== undefined) return { is: 'found', digest: stated, message: `${where} states ${stated}`, memory };
  if (strongTag !== undefined) {
    return {
      is: 'found',
      digest: validatorDigest([url, 'etag', strongTag, version]),
      message: `${where} has ETag ${etag}`,
      memory,
    };
  }
  if (lastModified === undefined) {
    const message = `${where} reports neither ETag nor Last-Modified, so that a change cannot be observed; name its checksum file in checksumURL`;
    return { is: 'failed', reason: 'NoValidator', message };
  }
  const size = headers['content-length'];
  if (lastModified === known.lastModified) return { is: 'same', message: `${where} is still of ${lastModified}` };
  return {
    is: 'found',
    digest: validatorDigest([url, 'date', lastModified, size]),
    message: `${where} is of ${lastModified}`,
    memory,
  };
};
