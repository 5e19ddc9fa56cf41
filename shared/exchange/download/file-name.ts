// The file name of a download (RFC 6266), and the requested format. Pure.
import { Problem } from '#shared/exchange/http/problem.ts';
import { ExportFormat } from '#shared/transfer/export/format.ts';

/** File extensions in display names; the file gets the extension of its format. */
const endings = /(\.(qcow2|img|raw|iso|vmdk|vdi|vhdx?|gz|xz|zst))+$/i;

/** A disc is downloaded unchanged: no player or installer reads a disc in a qcow2. */
export const standardFor = (sourceFormat: string | undefined, standard: ExportFormat): ExportFormat =>
  sourceFormat === 'iso' && standard.format === 'qcow2' ? { format: 'raw', compression: 'none' } : standard;

/** `iso` and `iso.gz` for the raw bytes of a disc. */
export const endingFor = (sourceFormat: string | undefined, extension: string): string =>
  sourceFormat === 'iso' ? extension.replace(/^(raw|img)/, 'iso') : extension;

/** Characters that are invalid in file names, or that lead out of a folder. */
// oxlint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u001F\u007F/\\:*?"<>|]+/g;

export const fileNameOf = (displayName: string, extension: string): string => {
  const stem = displayName.replace(endings, '').replace(unsafe, '_').replace(/^\.+/, '').trim();
  return `${stem === '' ? 'disk' : stem}.${extension}`;
};

/** RFC 8187: everything except token characters is encoded. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

/** Clients without support for `filename*` use the plain one. */
export const dispositionOf = (fileName: string): string => {
  const plain = fileName
    .normalize('NFKD')
    .replace(/[\u0300-\u036F]/g, '')
    .replace(/[^\x20-\x7E]/g, '_');
  const isPlain = plain === fileName && !fileName.includes('%');
  return `attachment; filename="${plain.replaceAll('%', '_')}"${isPlain ? '' : `; filename*=UTF-8''${encode(fileName)}`}`;
};

/** `?format=&compression=&level=`. Throws a Problem (400). */
export const formOf = (query: URLSearchParams, standard: ExportFormat): ExportFormat => {
  const [format, compression, level] = ['format', 'compression', 'level'].map((name) => query.get(name) ?? undefined);
  if (format === undefined && compression === undefined && level === undefined) return standard;
  const isPackedRaw = compression === 'gz' || compression === 'zst';
  const asked = { format: format ?? (isPackedRaw ? 'raw' : 'qcow2'), compression: compression ?? 'none' };
  const { data, error } = ExportFormat.safeParse(level === undefined ? asked : { ...asked, level: Number(level) });
  if (data !== undefined) return data;
  const what = error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ');
  throw new Problem(
    400,
    'BadRequest',
    `${what}: format is qcow2 (with compression none, zlib or zstd) or raw (with none, gz or zst)`,
  );
};

export const queryOf = ({ format, compression, level }: ExportFormat): string =>
  new URLSearchParams({ format, compression, ...(level === undefined ? {} : { level: String(level) }) }).toString();
