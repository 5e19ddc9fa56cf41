// Asks a web server whether a file changed: by its checksum file, or by validators in a conditional request. Called by observe.ts.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { type Destination, followRedirects, toDestination } from '#shared/clients/http/redirect.ts';
import { parseRetryAfter } from '#shared/clients/registry/refusal.ts';
import { findChecksum } from '#shared/golden/checksums.ts';
import type { Validators, Observation } from '#shared/golden/poll/observation.ts';
import type { HttpCronSource } from '#shared/golden/source.ts';
import { validatorDigest } from '#shared/golden/version.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

export interface HttpPoll {
  readonly client: HttpClient;
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
): Promise<HttpResponse> => {
  const signal = poll.signal === undefined ? {} : { signal: poll.signal };
  return (await followRedirects(poll.client, { origin, method, headers, ...signal })).response;
};

const refused = ({ now }: HttpPoll, { status, headers }: HttpResponse, url: string): Observation => {
  const retryAfterSeconds = parseRetryAfter(headers['retry-after'], now());
  const reason =
    status === 404 || status === 410
      ? 'FileNotFound'
      : status === 401 || status === 403
        ? 'Unauthorized'
        : status === 429 || status === 503
          ? 'RateLimited'
          : 'ServerRefused';
  return { is: 'failed', reason, message: `${redactUrl(url)} answered ${status}`, retryAfterSeconds };
};

const byChecksum = async (poll: HttpPoll, source: HttpCronSource, checksumUrl: string): Promise<Observation> => {
  const [file, sums] = [new URL(source.url), new URL(checksumUrl)];
  // Credentials are for the file's origin; the checksums may lie elsewhere.
  const response = await ask(poll, toDestination(sums, sums.origin === file.origin ? poll.secretHeaders : {}), 'GET');
  if (response.status !== 200) {
    response.discard();
    return refused(poll, response, checksumUrl);
  }
  const fileName = decodeURIComponent(file.pathname.split('/').at(-1) ?? '');
  const found = findChecksum(await readText(response), fileName);
  const where = redactUrl(checksumUrl);
  if ('problem' in found) return { is: 'failed', reason: 'ChecksumMissing', message: `${where} ${found.problem}` };
  return { is: 'found', digest: found.digest, message: `${where} says ${found.digest}`, memory: {} };
};

const readText = async (response: HttpResponse): Promise<string> => {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.length;
    if (length > mostBytes) break;
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString('utf8');
};

const conditionsOf = ({ etag, lastModified }: Validators): Readonly<Record<string, string>> => ({
  ...(etag === undefined ? {} : { 'if-none-match': etag }),
  ...(lastModified === undefined ? {} : { 'if-modified-since': lastModified }),
});

/** Servers that know no HEAD are asked to begin sending, and hung up on. */
const noHead = new Set([400, 403, 405, 501]);

const byValidator = async (poll: HttpPoll, source: HttpCronSource, known: Validators): Promise<Observation> => {
  const origin = toDestination(new URL(source.url), poll.secretHeaders);
  let response = await ask(poll, origin, 'HEAD', conditionsOf(known));
  response.discard();
  if (noHead.has(response.status)) {
    response = await ask(poll, origin, 'GET', conditionsOf(known));
    response.discard();
  }
  if (response.status === 304) return { is: 'same', message: `${redactUrl(source.url)} answered 304: not modified` };
  if (response.status !== 200) return refused(poll, response, source.url);
  return toObservation(response, known, source.url);
};

const toObservation = ({ headers }: HttpResponse, known: Validators, url: string): Observation => {
  const where = redactUrl(url);
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

/** The digest of a file where its server states one, in whichever of the headers for it. */
type Headers = Readonly<Record<string, string | undefined>>;

const sha256Length = 32;

const fromBase64 = (text: string | undefined): string | undefined => {
  if (!/^[A-Za-z0-9+/]+=*$/.test(text ?? '')) return undefined;
  const bytes = Buffer.from(text ?? '', 'base64');
  return bytes.length === sha256Length ? `sha256:${bytes.toString('hex')}` : undefined;
};

const fromHex = (text: string | undefined): string | undefined =>
  /^[0-9a-f]{64}$/i.test(text ?? '') ? `sha256:${text?.toLowerCase()}` : undefined;

/** `sha-256=:…:` of RFC 9530. */
const ofRepresentation = ({ 'repr-digest': text }: Headers): string | undefined =>
  fromBase64(/(?:^|[\s,])sha-256=:([A-Za-z0-9+/=]+):/i.exec(text ?? '')?.[1]);

/** `SHA-256=…` of RFC 3230. */
const ofInstance = ({ digest: text }: Headers): string | undefined =>
  fromBase64(/(?:^|[\s,])sha-256=([A-Za-z0-9+/=]+)/i.exec(text ?? '')?.[1]);

/** As repositories of artifacts say it. */
const ofArtifact = (headers: Headers): string | undefined => fromHex(headers['x-checksum-sha256']);

/** S3 stores say it of objects that came in one piece; one of several parts has a number behind it. */
const ofObject = (headers: Headers): string | undefined => fromBase64(headers['x-amz-checksum-sha256']);

/** `undefined` where the server states none, or states that of an encoding in place of the file's. */
export const statedDigest = (headers: Headers): string | undefined => {
  const { 'content-encoding': encoding = 'identity' } = headers;
  if (encoding !== 'identity') return undefined;
  return ofRepresentation(headers) ?? ofInstance(headers) ?? ofArtifact(headers) ?? ofObject(headers);
};
