// Whether a file is signed as the policy wants: by the signature of a checksum file that names it. The format of the signature is passed in.
import type { GpgRule } from '#shared/api/bullion/verify.ts';
import { digestsNamed } from '#shared/golden/checksums.ts';
import { type SignatureRefusal, type Verified, bestOf, refuse } from '#shared/golden/signature/outcome.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { decoded } from '#shared/clients/http/address.ts';

export type FetchedFile =
  | { readonly is: 'file'; readonly bytes: Buffer }
  /** The server has no such file, or shows it to nobody. */
  | { readonly is: 'absent'; readonly status: number }
  | { readonly is: 'too-large' };

/** At most `mostFileBytes` of it. Throws an AppError where it cannot be known what is there. */
export type FetchFile = (url: URL) => Promise<FetchedFile>;

/** Of a checksum file or a signature. */
export const mostFileBytes = 1024 * 1024;

/** What a trusted key signed, and nothing else of the file. */
export interface SignedText {
  readonly is: 'signed';
  readonly text: string;
  readonly by: string;
  /** RFC 3339. */
  readonly signedAt?: string | undefined;
}

export interface SignatureFormat {
  readonly kind: string;
  /** What vendors add to the name of the checksum file. */
  readonly suffixes: readonly string[];
  /** Of a file that holds its own signature. */
  readonly isWithin: (file: Buffer) => boolean;
  /** `where` names the file in messages. */
  readonly within: (file: Buffer, where: string) => Promise<SignedText | SignatureRefusal>;
  readonly detached: (data: Buffer, signature: Buffer, where: string) => Promise<SignedText | SignatureRefusal>;
}

export interface FileVersion {
  readonly url: string;
  readonly checksumUrl?: string | undefined;
  /** Of the version. */
  readonly digest: string;
}

type Places = Pick<GpgRule, 'checksums' | 'signature'>;

/** A URL, what is added to the path of `base`, or the name of a file beside it. */
export const placeOf = (text: string, base: URL): URL | undefined => {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? new URL(text) : undefined;
  const beside = new URL(base);
  beside.search = '';
  beside.hash = '';
  if (/^\.[^./]/.test(text)) beside.pathname += text;
  else beside.pathname = beside.pathname.replace(/[^/]*$/, '') + text;
  return beside;
};

const noPlace = (field: string, text: string): SignatureRefusal =>
  refuse(
    'InvalidPolicy',
    `${field} "${redactUrl(text)}" is not an http or https URL, nor the name of a file beside the image, nor a suffix such as .asc`,
  );

const wherePlaced = ({ checksums }: Places, version: FileVersion): URL | SignatureRefusal => {
  const text = checksums ?? version.checksumUrl;
  if (text === undefined)
    return refuse(
      'InvalidPolicy',
      `no checksum file is named for ${redactUrl(version.url)}: name the signed one in checksums, beside the keys, or in checksumURL of the source; a signature of the image itself is not read`,
    );
  return placeOf(text, new URL(version.url)) ?? noPlace('checksums', text);
};

const absence = (what: string, url: URL, file: Exclude<FetchedFile, { is: 'file' }>): SignatureRefusal =>
  refuse(
    'Unsigned',
    file.is === 'absent'
      ? `${what} ${redactUrl(url.href)} is not there: the server answered ${file.status}`
      : `${what} ${redactUrl(url.href)} has more than ${mostFileBytes} bytes, which no checksum file has`,
  );

/** Throws what `fetch` does. */
export const verifyFile = async (
  fetch: FetchFile,
  version: FileVersion,
  places: Places,
  format: SignatureFormat,
): Promise<Verified | SignatureRefusal> => {
  const url = wherePlaced(places, version);
  if (!(url instanceof URL)) return url;
  const file = await fetch(url);
  if (file.is !== 'file') return absence('the checksum file', url, file);
  const signed =
    places.signature === undefined && format.isWithin(file.bytes)
      ? await format.within(file.bytes, redactUrl(url.href))
      : await verifyDetached(fetch, { url, bytes: file.bytes }, places, format);
  return signed.is === 'refused' ? signed : judgeText(signed, version, url, format.kind);
};

interface Sums {
  readonly url: URL;
  readonly bytes: Buffer;
}

const verifyDetached = async (
  fetch: FetchFile,
  sums: Sums,
  { signature }: Places,
  format: SignatureFormat,
): Promise<SignedText | SignatureRefusal> => {
  const texts = signature === undefined ? format.suffixes : [signature];
  const found: (SignedText | SignatureRefusal)[] = [];
  for (const text of texts) {
    const place = placeOf(text, sums.url);
    if (place === undefined) return noPlace('signature', text);
    const file = await fetch(place);
    if (file.is === 'file') found.push(await format.detached(sums.bytes, file.bytes, redactUrl(place.href)));
    else if (signature !== undefined) return absence('the signature', place, file);
    if (found.at(-1)?.is === 'signed') break;
  }
  const where = redactUrl(sums.url.href);
  return bestOf(
    found,
    refuse(
      'Unsigned',
      `${where} is not signed: neither within, nor by a file with one of ${texts.join(', ')} added to its name`,
    ),
  );
};

const nameOf = (url: string): string => decoded(new URL(url).pathname.split('/').at(-1) ?? '');

const judgeText = (signed: SignedText, version: FileVersion, url: URL, kind: string): Verified | SignatureRefusal => {
  const { digest } = version;
  const [algorithm = ''] = digest.split(':');
  const name = nameOf(version.url);
  const where = `${redactUrl(url.href)}, signed by ${signed.by},`;
  const named = digestsNamed(signed.text, name);
  const fitting = named.filter((one) => one.startsWith(`${algorithm}:`));
  if (fitting.length > 1)
    return refuse('DigestNotSigned', `${where} has different digests for ${name}: ${fitting.join(', ')}`);
  if (fitting[0] === digest) {
    const { by, signedAt } = signed;
    const message = `${redactUrl(url.href)} says ${digest} for ${name}, signed by ${by}${signedAt === undefined ? '' : ` at ${signedAt}`}`;
    return { is: 'verified', digest, kind, by, signedAt, message };
  }
  if (fitting[0] !== undefined)
    return refuse(
      'DigestNotSigned',
      `${where} says ${fitting[0]} for ${name}, not ${digest}: wait until the vendor has published both, or the file was replaced`,
    );
  if (named.length === 0) return refuse('DigestNotSigned', `${where} has no line for ${name}`);
  return refuse(
    'DigestNotSigned',
    `${where} has no ${algorithm} digest for ${name}, only ${named.join(', ')}: name that file in checksumURL of the source`,
  );
};
