// `bullion bundle save`: what the words of the command line mean, and how their bytes are fetched.
import type { KeyObject } from 'node:crypto';
import { openRegistry, readOptionFile } from '#cli/bundle/access.ts';
import { readHave } from '#cli/bundle/have.ts';
import { type Saving, saveBundle } from '#cli/bundle/save.ts';
import { findWanted } from '#cli/bundle/wanted.ts';
import { type Call, type ExitCode, type Values, exitCodes, textOf } from '#cli/command.ts';
import { type Connection, openConnection } from '#cli/exchange/answer.ts';
import { fetchFile } from '#cli/exchange/fetch.ts';
import { type Line, countBytes } from '#cli/line.ts';
import { getTicket } from '#shared/catalogue/ticket.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { readSigningKey } from '#shared/transfer/export/sign-image.ts';
import { architectureOf } from '#shared/transfer/source/open.ts';

type Fetching = Pick<Saving, 'withRegistry' | 'download'>;

/** Disks of the cluster as any download. */
const fetchingOf = (call: Call, connection: Connection, line: Line): Fetching => {
  const { kube, bearer, namespace, values, signal } = call;
  const server = textOf(values, 'transfer-url');
  const query = `format=qcow2&compression=${textOf(values, 'compression') ?? 'zstd'}`;
  return {
    withRegistry: async ({ image, access }, work) => {
      const { client, close } = await openRegistry(image, { values, signal, access, side: { kube, namespace } });
      try {
        return await work(client);
      } finally {
        await close();
      }
    },
    download: async ({ name, target }, file) => {
      await fetchFile({
        file,
        folder: '',
        connection,
        query,
        signal,
        tries: 8,
        getTicket: () => getTicket({ kube, bearer, operation: 'download', target, server }),
        onRetry: (why, seconds) => line.show(`${name}: ${why}; retrying in ${seconds} s`),
        onProgress: (taken, size) => countBytes(line, `downloading ${name}`, taken, size),
      });
    },
  };
};

const readSigner = async (values: Values): Promise<KeyObject | undefined> => {
  const file = await readOptionFile(values, 'sign-with');
  return file && readSigningKey({ key: file.toString('utf8') }, 'the file of --sign-with');
};

export const save = async (call: Call, line: Line, path: string): Promise<ExitCode> => {
  const { kube, namespace, positionals, values, signal, terminal } = call;
  const words = positionals.slice(2);
  if (words.length === 0)
    throw new InvalidInput('[image…] is missing: name what to save, such as jammy or fedora@stable');
  const have = await readHave(textOf(values, 'have'));
  const signer = await readSigner(values);
  const connection = await openConnection(values);
  try {
    const images = await saveBundle({
      path,
      wanted: await findWanted({ kube, namespace }, words),
      have,
      signal,
      signer,
      architecture: textOf(values, 'arch') ?? architectureOf(process.arch),
      say: (text) => line.show(text),
      onProgress: (name, ...bytes) => countBytes(line, `downloading ${name}`, ...bytes),
      ...fetchingOf(call, connection, line),
    });
    line.end();
    for (const { name, tags, digest } of images) terminal.out(`${name}:${tags[0]}@${digest}\n`);
    return exitCodes.done;
  } finally {
    await connection.close();
  }
};
