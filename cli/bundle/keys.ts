// Keys of the command line: the private one that signs a bundle, and the public ones that must have signed it.
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { readOptionFile } from '#cli/bundle/access.ts';
import { type Values, listOf } from '#cli/command.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';
import { readSigningKey } from '#shared/transfer/export/sign-image.ts';

export const readSigner = async (values: Values): Promise<KeyObject | undefined> => {
  const file = await readOptionFile(values, 'sign-with');
  return file && readSigningKey({ key: file.toString('utf8') }, 'the file of --sign-with');
};

export const keysOf = (values: Values): Promise<readonly string[]> =>
  Promise.all(
    listOf(values, 'key').map((path) =>
      readFile(path, 'utf8').catch((error: unknown) => {
        throw new InvalidInput(`--key ${path} cannot be read: ${messageOf(error)}`, [], { cause: error });
      }),
    ),
  );
