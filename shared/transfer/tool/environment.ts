// What helper programs are run with. Called by everything here that starts one.
import { z } from 'zod';
import { parseConfig, setting } from '#shared/runtime/config.ts';

const { path } = parseConfig(
  z.object({
    path: setting(
      'PATH',
      'Where qemu-img, xz and zstd are looked for.',
      z.string().default('/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'),
    ),
  }),
);

/** The search path of this process, and nothing else of its environment: that holds what the transfer is told, addresses and all. */
export const toolEnvironment = { PATH: path, LC_ALL: 'C' } as const;
