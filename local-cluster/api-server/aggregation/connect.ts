// Connects to extension servers: resolves the address behind a Service, authenticates with the front proxy's certificate, and passes on the
// user in headers that are trusted only with that certificate.
import { Agent, type Dispatcher, request } from 'undici';
import type { KeyPair } from '../auth/certificates.ts';
import type { User } from '../auth/user.ts';
import { goWords } from '../http/go-words.ts';
import type { ServiceResolver } from '../admission/send.ts';
import { fieldsAt, textAt } from '../objects/object.ts';
import type { Store } from '../store/store.ts';
import type { Extension, ServiceReference } from './extension.ts';

export interface Ask {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  readonly user: User;
  readonly signal?: AbortSignal | undefined;
}

export interface Connector {
  /** Throws when the server is unreachable, with the message of Go. */
  readonly ask: (extension: Extension, ask: Ask) => Promise<Dispatcher.ResponseData>;
  /** Whether the Service behind it exists; the text says what is missing, with the message of the availability controller. */
  readonly missing: (extension: Extension) => { readonly reason: string; readonly message: string } | undefined;
  readonly close: () => Promise<void>;
}

export interface ConnectorOptions {
  readonly store: Store;
  readonly resolve: ServiceResolver;
  /** The certificate of the front proxy; default: none. */
  readonly certificate?: KeyPair | undefined;
}

/** A header may occur several times: groups do. */
const userHeaders = ({ username, uid, groups, extra = {} }: User): readonly string[] => [
  'x-remote-user',
  username,
  ...(uid === undefined ? [] : ['x-remote-uid', uid]),
  ...groups.flatMap((group) => ['x-remote-group', group]),
  ...Object.entries(extra).flatMap(([key, values]) =>
    values.flatMap((value) => [`x-remote-extra-${encodeURIComponent(key).toLowerCase()}`, value]),
  ),
];

export const createConnector = ({ store, resolve, certificate }: ConnectorOptions): Connector => {
  const agents = new Map<string, Agent>();

  const serviceObject = ({ namespace, name }: ServiceReference) =>
    store.get({ collection: 'services', namespace, name })?.object();

  const addressOf = (service: ServiceReference): { readonly host: string; readonly port: number } | undefined => {
    const object = serviceObject(service);
    const external = object === undefined ? undefined : textAt(fieldsAt(object, 'spec'), 'externalName');
    return external === undefined ? resolve(service) : { host: external, port: service.port };
  };

  const agentOf = ({ service, caBundle, skipsVerification }: Extension): Agent => {
    const servername = `${service.name}.${service.namespace}.svc`;
    const key = `${servername}\n${caBundle ?? ''}\n${skipsVerification}`;
    const known = agents.get(key);
    if (known !== undefined) return known;
    const agent = new Agent({
      connect: {
        servername,
        rejectUnauthorized: !skipsVerification,
        ...(caBundle === undefined ? {} : { ca: caBundle }),
        ...(certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.key }),
      },
      bodyTimeout: 0,
    });
    agents.set(key, agent);
    return agent;
  };

  return {
    missing: ({ service }) => {
      if (serviceObject(service) !== undefined || resolve(service) !== undefined) return undefined;
      const message = `service/${service.name} in "${service.namespace}" is not present`;
      return { reason: 'ServiceNotFound', message };
    },
    ask: async (extension, { method, path, headers, body, user, signal }) => {
      const address = addressOf(extension.service);
      if (address === undefined) throw new Error(`service "${extension.service.name}" not found`);
      const url = `https://${address.host}:${address.port}${path}`;
      try {
        return await request(url, {
          method: method as Dispatcher.HttpMethod,
          dispatcher: agentOf(extension),
          headers: [...Object.entries(headers).flat(), ...userHeaders(user)],
          ...(body === undefined ? {} : { body }),
          ...(signal === undefined ? {} : { signal }),
        });
      } catch (error) {
        throw new Error(goWords(error, url), { cause: error });
      }
    },
    close: async () => void (await Promise.all([...agents.values()].map((agent) => agent.destroy()))),
  };
};
