// Which cluster is meant, and as whom: kubeconfig, context, cluster and user, as kubectl has them.
import { HttpMethod, type KubeConfig, RequestContext } from '@kubernetes/client-node';
import { type Values, textOf } from '#cli/command.ts';
import { loadKubeConfig } from '#shared/clients/kube/create.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

const load = (path: string | undefined): KubeConfig => {
  try {
    return loadKubeConfig(path);
  } catch (error) {
    const what = path === undefined ? 'the kubeconfig' : `kubeconfig ${path}`;
    throw new InvalidInput(`${what} cannot be read: ${messageOf(error)}`, [], { cause: error });
  }
};

const requireNamed = (kind: string, name: string, known: readonly { readonly name: string }[]): void => {
  if (known.some((one) => one.name === name)) return;
  const names = known.map((one) => one.name).join(', ');
  throw new InvalidInput(`the kubeconfig has no ${kind} ${name}: it has ${names === '' ? 'none' : names}`);
};

/** Of this call alone; nothing is written back. */
const ownContext = 'bullion';

/** Throws InvalidInput where a name is in none of the files. */
export const configOf = (values: Values): KubeConfig => {
  const config = load(textOf(values, 'kubeconfig'));
  const [context, cluster, user] = ['context', 'cluster', 'user'].map((name) => textOf(values, name));
  if (context !== undefined) {
    requireNamed('context', context, config.getContexts());
    config.setCurrentContext(context);
  }
  if (cluster === undefined && user === undefined) return config;
  if (cluster !== undefined) requireNamed('cluster', cluster, config.getClusters());
  if (user !== undefined) requireNamed('user', user, config.getUsers());
  const current = config.getContextObject(config.getCurrentContext()) ?? { cluster: '', user: '' };
  config.addContext({
    ...current,
    ...(cluster === undefined ? {} : { cluster }),
    ...(user === undefined ? {} : { user }),
    name: ownContext,
  });
  config.setCurrentContext(ownContext);
  return config;
};

/** Of --namespace, else of the context. */
export const namespaceOf = (values: Values, config: KubeConfig): string =>
  textOf(values, 'namespace') ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';

/** What the API server is shown of the caller, where that is a token; read each time, since they are renewed. */
export const bearerOf = async (config: KubeConfig): Promise<string | undefined> => {
  const context = new RequestContext(config.getCurrentCluster()?.server ?? '', HttpMethod.GET);
  await config.applySecurityAuthentication(context);
  const shown = Object.entries(context.getHeaders()).find(([name]) => name.toLowerCase() === 'authorization')?.[1];
  return /^Bearer (\S+)$/.exec(String(shown))?.[1];
};
