// The command line of `npm start`. Called by main.ts.
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { type ApiServerKind, apiServerKinds } from '#infra/local/api.ts';
import { setting } from '#shared/runtime/config.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

export const usage = `Runs a local Kubernetes cluster with Bullion in it, in one process.

  npm start -- [options]

  --data-dir D          keeps everything; the same directory gives the same cluster again (.bullion)
  --port P              port of the API server on 127.0.0.1 (a free one, the same at each start)
  --apiserver KIND      embedded, or real: kube-apiserver and etcd from KUBEBUILDER_ASSETS (embedded)
  --tick SECONDS        time between sweeps over unsettled images (each full minute)
  --help                this text

Prints one line "ready kubeconfig=<path>" on standard output once everything answers. Ends with SIGTERM or Ctrl-C: running
transfers are stopped, and go on at the next start.
`;

export interface StartOptions {
  readonly dataDir: string;
  readonly port?: number | undefined;
  readonly apiServer: ApiServerKind;
  readonly tickSeconds?: number | undefined;
  readonly help: boolean;
}

/** What the local cluster takes from its environment. */
export const HostConfig = z.object({
  path: setting(
    'PATH',
    'Where transfers find qemu-img and others.',
    z.string().default('/usr/local/bin:/usr/bin:/bin'),
  ),
  assets: setting(
    'KUBEBUILDER_ASSETS',
    'Folder with kube-apiserver and etcd for --apiserver=real.',
    z.string().optional(),
  ),
  assetsCache: setting('BULLION_ENVTEST_CACHE', 'Folder that `npm run envtest` builds them in.', z.string().optional()),
});

export const toEnvironment = ({ path, assets, assetsCache }: z.infer<typeof HostConfig>) => ({
  PATH: path,
  KUBEBUILDER_ASSETS: assets,
  BULLION_ENVTEST_CACHE: assetsCache,
});

/** Throws InvalidInput with words about the first thing that is wrong. */
export const parseStartOptions = (args: readonly string[]): StartOptions => {
  const values = readArgs(args);
  const apiServer = apiServerKinds.find((kind) => kind === (values.apiserver ?? 'embedded'));
  if (apiServer === undefined)
    throw new InvalidInput(`--apiserver is ${apiServerKinds.join(' or ')}, not ${values.apiserver}`);
  return {
    dataDir: values['data-dir'] ?? '.bullion',
    apiServer,
    help: values.help ?? false,
    port: numberOf('--port', values.port, { least: 1, most: 65_535 }),
    tickSeconds: numberOf('--tick', values.tick, { least: 0.1, most: 86_400 }),
  };
};

const readArgs = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      strict: true,
      options: {
        'data-dir': { type: 'string' },
        port: { type: 'string' },
        apiserver: { type: 'string' },
        tick: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new InvalidInput(messageOf(error), [], { cause: error });
  }
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
