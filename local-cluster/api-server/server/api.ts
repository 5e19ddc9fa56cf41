// Combines the parts of the server, without sockets: the interface for tests and simulations, and for server.ts.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type ServiceResolver, createSender } from '../admission/send.ts';
import { startAvailability } from '../aggregation/availability.ts';
import { createConnector } from '../aggregation/connect.ts';
import type { KeyPair } from '../auth/certificates.ts';
import { createWebhookAdmission } from '../admission/webhooks.ts';
import { createAuthorizer } from '../auth/authorizer.ts';
import { createTokens, loadSecrets } from '../auth/tokens.ts';
import { createDiscovery } from '../discovery/discovery.ts';
import { createOpenApi } from '../discovery/open-api.ts';
import type { Api, Audit } from '../handlers/call.ts';
import { type Handle, createRouter } from '../http/router.ts';
import { startCrdController } from '../registry/crd-controller.ts';
import { createRegistry } from '../registry/registry.ts';
import type { StrategyContext } from '../registry/resource.ts';
import { type Store, createStore } from '../store/store.ts';
import { bootstrap } from './bootstrap.ts';

export interface ApiOptions {
  /** Data directory; default: in memory only. */
  readonly dataDir?: string;
  readonly clock?: () => Date;
  /** Numbers in [0, 1): suffixes of generated names, durations of watches. */
  readonly random?: () => number;
  readonly uuid?: () => string;
  /** Whether users other than the administrator need roles. Default: true. */
  readonly rbac?: boolean;
  /** Addresses of the services of webhooks and extension servers. Default: only services with an external name are reachable. */
  readonly resolveService?: ServiceResolver;
  /** The identity of the front proxy for extension servers. Default: none. */
  readonly proxyCertificate?: KeyPair;
  /** File with a container's output; default: `kubectl logs` finds none. */
  readonly containerLog?: ((podUid: string, container: string) => string) | undefined;
  /** Called with every request that was allowed. */
  readonly audit?: Audit | undefined;
  /** Versions kept for watches and pages; see the store. */
  readonly historyLimit?: number;
}

export interface ApiCore {
  /** Handles a request; credentials are in the `authorization: Bearer` header, hosts are ignored. */
  readonly handle: Handle;
  /** Token of the administrator. */
  readonly token: string;
  readonly store: Store;
  readonly clock: () => Date;
  readonly uuid: () => string;
  /** Sets the address of the server, for discovery. */
  readonly setAddress: (hostAndPort: string) => void;
  readonly close: () => Promise<void>;
}

const contextOf = (store: Store, clock: () => Date): StrategyContext => ({
  now: clock(),
  find: (collection, namespace, name) => store.get({ collection, namespace, name })?.object(),
  all: (collection) => store.page({ collection, limit: 100_000 }).entries.map((entry) => entry.object()),
});

export const createApi = (options: ApiOptions = {}): ApiCore => {
  const {
    dataDir,
    clock = () => new Date(),
    random = Math.random,
    uuid = randomUUID,
    rbac = true,
    historyLimit,
  } = options;
  const file = dataDir === undefined ? ':memory:' : join(dataDir, 'state.db');
  const store = createStore({ file, ...(historyLimit === undefined ? {} : { historyLimit }) });
  const registry = createRegistry(store);
  const tokens = createTokens(loadSecrets(dataDir), store, clock);
  const resolve = options.resolveService ?? (() => undefined);
  const sender = createSender(resolve);
  const connector = createConnector({ store, resolve, certificate: options.proxyCertificate });
  const api: Api = {
    store,
    registry,
    clock,
    random,
    uuid,
    admission: createWebhookAdmission(store, sender),
    authorizer: createAuthorizer(store, rbac),
    tokens,
    strategies: () => contextOf(store, clock),
    containerLog: options.containerLog,
    audit: options.audit,
  };
  let address = '127.0.0.1:443';
  bootstrap({ store, registry, clock, uuid, port: 443 });
  const extensions = startAvailability(store, connector, clock);
  const discovery = createDiscovery(registry, () => address, extensions.described);
  const openApi = createOpenApi(registry, extensions);
  const controller = startCrdController(store, clock);
  return {
    handle: createRouter(api, { discovery, openApi, connector }),
    token: tokens.admin,
    store,
    clock,
    uuid,
    setAddress: (hostAndPort) => {
      address = hostAndPort;
    },
    close: async () => {
      controller.close();
      extensions.close();
      await Promise.all([sender.close(), connector.close()]);
      store.close();
    },
  };
};
