// `bullion download <name>`: an image or a volume as a file.
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { openConnection } from '#cli/exchange/answer.ts';
import { type Fetching, fetchFile } from '#cli/exchange/fetch.ts';
import { getTicket } from '#shared/catalogue/ticket.ts';
import { countBytes, createLine } from '#cli/line.ts';
import { sourceTarget, targetOptions } from '#cli/target.ts';
import { formOf, queryOf } from '#shared/exchange/download/file-name.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { type ExportFormat, exportCompressions } from '#shared/transfer/export/format.ts';

/** Tries in a row that bring nothing. */
const tries = 8;

/** Throws InvalidInput for a file with the ending of another form: it would pass for what it is not. */
export const queryFor = ({ values }: Pick<Call, 'values'>, file: string | undefined): string => {
  const query = new URLSearchParams();
  for (const name of ['format', 'compression']) {
    const value = textOf(values, name);
    if (value !== undefined) query.set(name, value);
  }
  // By itself a disk comes as qcow2, and a disc as it is.
  const form = formOf(query, { format: 'qcow2', compression: 'none' });
  const wrong = wrongEnding(form, file);
  if (wrong !== undefined) throw new InvalidInput(wrong);
  return query.size === 0 ? '' : queryOf(form);
};

const endings: Readonly<Record<string, string>> = {
  qcow2: '--format qcow2',
  raw: '--format raw',
  gz: '--compression gz',
  zst: '--compression zst',
};

const wrongEnding = ({ format, compression }: ExportFormat, file = ''): string | undefined => {
  const packing = compression === 'gz' || compression === 'zst' ? compression : undefined;
  const is = packing ?? format;
  const named = extname(file).slice(1).toLowerCase();
  const asked = endings[named];
  if (asked === undefined || named === is) return undefined;
  const what = packing === undefined ? `a ${format} disk` : `a raw disk packed with ${packing}`;
  return `${file} would hold ${what}: name a file that ends in .${is}, or ask for another form (${asked})`;
};

/** As an argument, or as curl has it: one of the two. */
const fileOf = ({ positionals, values }: Call): string | undefined => {
  const [, file] = positionals;
  const output = textOf(values, 'output');
  if (file !== undefined && output !== undefined)
    throw new InvalidInput(`one download is one file: ${file} and --output ${output} are two, leave one out`);
  return output ?? file;
};

/** A folder that is there takes the file by the name that the cluster has for it. */
const placeOf = async (file: string | undefined): Promise<Pick<Fetching, 'file' | 'folder'>> => {
  if (file === undefined) return { file, folder: '' };
  if (file === '-')
    throw new InvalidInput('- is not a file: an interrupted download resumes from its file, so it needs one');
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory() === true) return { file: undefined, folder: file };
  if (file.endsWith('/')) throw new InvalidInput(`there is no folder ${file}: create it first`);
  return { file, folder: '' };
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, bearer, values, terminal, signal, positionals } = call;
  const [wanted = ''] = positionals;
  const place = await placeOf(fileOf(call));
  const query = queryFor(call, place.file);
  const target = await sourceTarget(call, wanted);
  const line = createLine(terminal);
  const server = textOf(values, 'transfer-url');
  const connection = await openConnection(values);
  try {
    const made = await fetchFile({
      ...place,
      connection,
      query,
      signal,
      tries,
      getTicket: () => getTicket({ kube, bearer, operation: 'download', target, server }),
      onRetry: (why, seconds) => line.show(`${wanted}: ${why}; retrying in ${seconds} s`),
      onProgress: (taken, size) => countBytes(line, `downloading ${wanted}`, taken, size),
    });
    line.end();
    terminal.out(`${made}\n`);
    return exitCodes.done;
  } finally {
    line.end();
    await connection.close();
  }
};

export const downloadCommand: ClusterCommand = {
  name: 'download',
  arguments: '<name> [file]',
  summary: 'Downloads an image or a volume as a file, and prints its name.',
  more: 'An interrupted download resumes: run the same command again. The file has its name only once all of it is there.\n\n  bullion download mine\n  bullion download mine -o mine.qcow2 --compression zstd',
  completes: 'images',
  options: {
    ...targetOptions,
    output: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      help: 'file or folder, in place of the argument (a file in this folder, with the name that the cluster gives it)',
    },
    format: { type: 'string', value: 'FORMAT', help: 'form of the disk (qcow2)', oneOf: ['qcow2', 'raw'] },
    compression: {
      type: 'string',
      value: 'HOW',
      help: 'zlib or zstd inside a qcow2, gz or zst around a raw disk (none)',
      oneOf: exportCompressions,
    },
  },
  run,
};
