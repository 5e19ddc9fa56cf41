// Which cluster is meant, and as whom: kubeconfig, context, cluster and user, as kubectl has them.
import {
  type Cluster,
  type Context,
  HttpMethod,
  type KubeConfig,
  RequestContext,
  type User,
} from '@kubernetes/client-node';
import { type Values, listOf, textOf } from '#cli/command.ts';
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

/** Of this call alone, and nobody else's: nothing is written back. */
const own = 'this call of bullion';

interface ClusterWishes {
  readonly server: string | undefined;
  readonly caFile: string | undefined;
  readonly tlsServerName: string | undefined;
  readonly isTrusted: boolean;
}

const wishesOf = (values: Values): ClusterWishes => {
  const [server, caFile, tlsServerName] = ['server', 'certificate-authority', 'tls-server-name'].map((option) =>
    textOf(values, option),
  );
  const isTrusted = values['insecure-skip-tls-verify'] === true;
  if (isTrusted && caFile !== undefined)
    throw new InvalidInput(
      '--certificate-authority cannot be combined with --insecure-skip-tls-verify: give one of them',
    );
  if (server !== undefined && !/^https?:\/\/./i.test(server))
    throw new InvalidInput(`--server is http(s)://<host>, not ${server}`);
  return { server, caFile, tlsServerName, isTrusted };
};

const nowhere: Cluster = { name: own, server: 'http://localhost:8080', skipTLSVerify: false };

/** Whom else to trust takes the place of the authority in the kubeconfig; over plain HTTP there is nobody to be trusted. */
const clusterOf = (config: KubeConfig, values: Values, name: string): Cluster => {
  const { server, caFile, tlsServerName, isTrusted } = wishesOf(values);
  const known = config.getCluster(name) ?? nowhere;
  const { caData: _data, caFile: _file, ...bare } = known;
  const url = server ?? known.server;
  return {
    ...(isTrusted || caFile !== undefined ? bare : known),
    ...(caFile === undefined ? {} : { caFile }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    name: own,
    server: url,
    skipTLSVerify: isTrusted || /^http:/i.test(url) || (known.skipTLSVerify && caFile === undefined),
  };
};

const userOf = (config: KubeConfig, values: Values, name: string): User | undefined => {
  const [token, certFile, keyFile, as] = ['token', 'client-certificate', 'client-key', 'as'].map((option) =>
    textOf(values, option),
  );
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new InvalidInput('--client-certificate and --client-key must be given together');
  if (as === undefined && listOf(values, 'as-group').length > 0)
    throw new InvalidInput('--as-group requires --as: a group alone is not a user');
  const hasCredentials = token !== undefined || certFile !== undefined;
  if (!hasCredentials && as === undefined) return undefined;
  return {
    ...(hasCredentials ? {} : config.getUser(name)),
    ...(token === undefined ? {} : { token }),
    ...(certFile === undefined || keyFile === undefined ? {} : { certFile, keyFile }),
    ...(as === undefined ? {} : { impersonateUser: as }),
    name: own,
  };
};

/** What a kubeconfig cannot say. */
export const headersOf = (values: Values): Readonly<Record<string, readonly string[]>> => {
  const groups = listOf(values, 'as-group');
  return groups.length === 0 ? {} : { 'Impersonate-Group': groups };
};

const chosenOf = (config: KubeConfig, values: Values): Pick<Context, 'cluster' | 'user' | 'namespace'> => {
  const [context, cluster, user] = ['context', 'cluster', 'user'].map((name) => textOf(values, name));
  if (context !== undefined) {
    requireNamed('context', context, config.getContexts());
    config.setCurrentContext(context);
  }
  if (cluster !== undefined) requireNamed('cluster', cluster, config.getClusters());
  if (user !== undefined) requireNamed('user', user, config.getUsers());
  const current = config.getContextObject(config.getCurrentContext()) ?? { cluster: '', user: '' };
  return { ...current, cluster: cluster ?? current.cluster, user: user ?? current.user };
};

/** Throws InvalidInput where a name is in none of the files. */
export const configOf = (values: Values): KubeConfig => {
  const config = load(textOf(values, 'kubeconfig'));
  const chosen = chosenOf(config, values);
  const user = userOf(config, values, chosen.user);
  config.addCluster(clusterOf(config, values, chosen.cluster));
  if (user !== undefined) config.addUser(user);
  config.addContext({ ...chosen, name: own, cluster: own, user: user?.name ?? chosen.user });
  config.setCurrentContext(own);
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
