// The command lines of `npm start` and `npm run demo`. Called by their main.ts.
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { type ApiServerKind, apiServerKinds } from '#local-cluster/api.ts';
import { setting } from '#shared/runtime/config.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

export const usage = `Runs a local Kubernetes cluster with Bullion in it, in one process.

  npm start -- [options]

  --data-dir D          keeps everything; the same directory gives the same cluster again (.bullion)
  --port P              port of the API server on 127.0.0.1 (a free one, the same at each start)
  --apiserver KIND      embedded, or real: kube-apiserver and etcd from KUBEBUILDER_ASSETS (embedded)
  --no-longhorn         behaves like a cluster without Longhorn: images of \`backend: backingimage\` wait, and then fail
  --tick SECONDS        time between sweeps over unsettled images (each full minute)
  --help                this text

Prints one line "ready kubeconfig=<path>" on standard output once everything answers. Ends with SIGTERM or Ctrl-C: running
transfers are stopped, and begin again at the next start. To throw everything away, end it and remove the data directory.

Storage classes: local (snapshots and clones), local-plain (neither), local-wffc (a volume is made for its first consumer),
longhorn (a stand-in that also keeps backing images).
`;

export interface StartOptions {
  readonly dataDir: string;
  readonly port?: number | undefined;
  readonly apiServer: ApiServerKind;
  readonly tickSeconds?: number | undefined;
  readonly longhorn: boolean;
  readonly help: boolean;
}

/** Environment of the local cluster. */
export const HostConfig = z.object({
  path: setting(
    'PATH',
    'Search path of transfers for qemu-img and other programs.',
    z.string().default('/usr/local/bin:/usr/bin:/bin'),
  ),
  assets: setting(
    'KUBEBUILDER_ASSETS',
    'Folder with kube-apiserver and etcd for --apiserver=real.',
    z.string().optional(),
  ),
  assetsCache: setting(
    'BULLION_ENVTEST_CACHE',
    'Folder in which `npm run envtest` builds them.',
    z.string().optional(),
  ),
  codeCache: setting(
    'NODE_COMPILE_CACHE',
    "Folder for compiled code of the cluster's and of transfers' processes.",
    z.string().optional(),
  ),
});

export const toEnvironment = ({ path, assets, assetsCache, codeCache }: z.infer<typeof HostConfig>) => ({
  PATH: path,
  KUBEBUILDER_ASSETS: assets,
  BULLION_ENVTEST_CACHE: assetsCache,
  NODE_COMPILE_CACHE: codeCache,
});

/** Throws InvalidInput with a message about the first error. */
export const parseStartOptions = (args: readonly string[]): StartOptions => {
  const { values } = parse(() =>
    parseArgs({
      args: [...args],
      options: {
        'data-dir': { type: 'string', default: '.bullion' },
        port: { type: 'string' },
        apiserver: { type: 'string' },
        tick: { type: 'string' },
        longhorn: { type: 'boolean', default: true },
        help: { type: 'boolean', short: 'h', default: false },
      },
      allowNegative: true,
    }),
  );
  return {
    dataDir: values['data-dir'],
    apiServer: kindOf(values.apiserver),
    help: values.help,
    longhorn: values.longhorn,
    port: numberOf('--port', values.port, { least: 1, most: 65_535 }),
    tickSeconds: numberOf('--tick', values.tick, { least: 0.1, most: 86_400 }),
  };
};

export const demoUsage = `Imports an image into a throw-away local cluster and proves that the volume holds it.

  npm run demo -- [address or file]

Without an argument the demo makes a small bootable disk itself. Where qemu-system-x86_64 is
installed, it boots the volume, and has a golden image booted before its channel takes it.

  --apiserver KIND      embedded or real (embedded)
  --help                this text`;

export interface DemoOptions {
  /** Address or file. Default: a generated disk. */
  readonly source?: string | undefined;
  readonly apiServer: ApiServerKind;
  readonly help: boolean;
}

/** Throws InvalidInput with a message about the first error. */
export const parseDemoOptions = (args: readonly string[]): DemoOptions => {
  const options = { apiserver: { type: 'string' }, help: { type: 'boolean', short: 'h', default: false } } as const;
  const { values, positionals } = parse(() => parseArgs({ args: [...args], allowPositionals: true, options }));
  if (positionals.length > 1) throw new InvalidInput(`one address or file at a time, not ${positionals.join(' and ')}`);
  return { source: positionals[0], apiServer: kindOf(values.apiserver), help: values.help };
};

const parse = <T>(read: () => T): T => {
  try {
    return read();
  } catch (error) {
    throw new InvalidInput(`${messageOf(error)} (--help lists the options)`, [], { cause: error });
  }
};

const kindOf = (text = 'embedded'): ApiServerKind => {
  const found = apiServerKinds.find((kind) => kind === text);
  if (found === undefined) throw new InvalidInput(`--apiserver is ${apiServerKinds.join(' or ')}, not ${text}`);
  return found;
};

const numberOf = (
  name: string,
  text: string | undefined,
  { least, most }: { readonly least: number; readonly most: number },
): number | undefined => {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== '' && value >= least && value <= most) return value;
  throw new InvalidInput(`${name} takes a number from ${least} to ${most}, not "${text}"`);
};
