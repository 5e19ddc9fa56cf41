// What a download is called (RFC 6266), and the form that is asked for. Pure.
import { Problem } from '#shared/exchange/http/problem.ts';
import { ExportFormat } from '#shared/transfer/export/format.ts';

/** Endings that people put into display names; the file has the one of its form. */
const endings = /(\.(qcow2|img|raw|iso|vmdk|vdi|vhdx?|gz|xz|zst))+$/i;

/** A disc is handed out as it is: no player and no installer reads one in a qcow2. */
export const standardFor = (sourceFormat: string | undefined, standard: ExportFormat): ExportFormat =>
  sourceFormat === 'iso' && standard.format === 'qcow2' ? { format: 'raw', compression: 'none' } : standard;

/** `iso` and `iso.gz` for what is read from a disc byte by byte. */
export const endingFor = (sourceFormat: string | undefined, extension: string): string =>
  sourceFormat === 'iso' ? extension.replace(/^(raw|img)/, 'iso') : extension;

/** Characters that end a name, or lead out of a folder, wherever it is saved. */
// oxlint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u001F\u007F/\\:*?"<>|]+/g;

export const fileNameOf = (displayName: string, extension: string): string => {
  const stem = displayName.replace(endings, '').replace(unsafe, '_').replace(/^\.+/, '').trim();
  return `${stem === '' ? 'disk' : stem}.${extension}`;
};

/** RFC 8187: everything but what tokens are made of is encoded. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

/** Clients that know no `filename*` take the plain one. */
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
