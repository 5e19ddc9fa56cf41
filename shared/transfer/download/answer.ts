// The answer to a request for a file (RFC 9110: ranges and conditions), before any of it is read. Pure.
import type { ExportFile } from '#shared/transfer/export/file.ts';

export interface FileRequest {
  readonly range?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

export interface FileAnswer {
  readonly status: 200 | 206 | 304 | 412 | 416;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes to send, both ends inclusive. Default: none, or the whole file if its size is unknown. */
  readonly range?: { readonly first: number; readonly last: number } | undefined;
}

type Facts = Pick<ExportFile, 'size' | 'hasRanges' | 'etag' | 'contentType'>;

const lists = (header: string, etag: string): boolean =>
  header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);

/** `undefined`: the whole file, also for an invalid range and for several ranges, as RFC 9110 permits. `none`: the range is outside of the file. */
export const parseRange = (header: string, size: number): { first: number; last: number } | 'none' | undefined => {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header.replaceAll(' ', '')) ?? [];
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? 'none' : { first: size - length, last: size - 1 };
  }
  const first = Number(from);
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= size ? 'none' : { first, last };
};

const headersOf = ({ etag, contentType, hasRanges }: Facts): Record<string, string> => ({
  etag,
  'content-type': contentType,
  'accept-ranges': hasRanges ? 'bytes' : 'none',
});

const whole = (file: Facts): FileAnswer => {
  const { size } = file;
  if (size === undefined) return { status: 200, headers: headersOf(file) };
  const headers = { ...headersOf(file), 'content-length': String(size) };
  return { status: 200, headers, range: { first: 0, last: size - 1 } };
};

/** The first condition that fails decides. */
export const answerFor = (file: Facts, asked: FileRequest): FileAnswer => {
  const { etag, size } = file;
  if (asked.ifMatch !== undefined && !lists(asked.ifMatch, etag)) return { status: 412, headers: { etag } };
  if (asked.ifNoneMatch !== undefined && lists(asked.ifNoneMatch, etag)) return { status: 304, headers: { etag } };
  // A download resumes only if the file is the same.
  const mayResume = asked.ifRange === undefined || asked.ifRange.trim() === etag;
  if (asked.range === undefined || size === undefined || !mayResume) return whole(file);
  const range = parseRange(asked.range, size);
  if (range === undefined) return whole(file);
  if (range === 'none') return { status: 416, headers: { ...headersOf(file), 'content-range': `bytes */${size}` } };
  const headers = {
    ...headersOf(file),
    'content-length': String(range.last - range.first + 1),
    'content-range': `bytes ${range.first}-${range.last}/${size}`,
  };
  return { status: 206, headers, range };
};
