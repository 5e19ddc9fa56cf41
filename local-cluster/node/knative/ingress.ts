// The way into Knative's Services, where others have Kourier: a reverse proxy that is configured by Knative's Ingress objects, and tells them that they are ready.
// A process of the node. Called by install.ts.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { type Informer, textOf } from '#local-cluster/controllers/informer.ts';
import { type Located, createProxy } from '#local-cluster/node/knative/proxy.ts';
import {
  type KnativeIngress,
  backendsOf,
  isOurs,
  knativeIngresses,
  targetOf,
} from '#local-cluster/node/knative/routes.ts';
import { type KubeObject, type ResourceType, keyOf } from '#shared/api/object.ts';

interface Service extends KubeObject {
  readonly spec: { readonly clusterIP?: string };
}

const services: ResourceType<Service> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};

interface IngressOptions extends ControllerContext {
  /** Address that pods reach. Knative sends them to its port 80. */
  readonly address: string;
  /** Names under which Services are also reached, and the hosts that stand for them, as behind a gateway. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** Resolves when requests are accepted, with how it is stopped. */
export const startIngress = async (options: IngressOptions): Promise<() => Promise<void>> => {
  const known: { ingresses?: Informer<KnativeIngress>; services?: Informer<Service> } = {};
  const addressOf = (namespace: string, name: string): string | undefined =>
    known.services?.get(textOf({ namespace, name }))?.spec.clusterIP;
  const controller = startController(
    {
      ...options,
      name: 'ingress',
      reconcile: async (key) => {
        // What requests are routed by, so that nothing is ready before it is routed.
        const ingress = known.ingresses?.get(key);
        if (ingress === undefined || !isOurs(ingress) || isReady(ingress)) return undefined;
        const isThere = backendsOf(ingress).every(
          (one) => addressOf(one.serviceNamespace, one.serviceName) !== undefined,
        );
        if (!isThere) return 200;
        const patch = { status: readyStatus(ingress, options.address) };
        await options.kube.mergePatch(knativeIngresses, keyOf(ingress), patch, { subresource: 'status' });
        return undefined;
      },
    },
    ({ watch }) => {
      known.ingresses = watch(knativeIngresses, ({ metadata }) => [textOf(metadata)]);
      known.services = watch(services, () => []);
    },
  );
  await controller.ready;
  const route = (incoming: IncomingMessage): Located | undefined => {
    const named = (incoming.headers.host ?? '').replace(/:\d+$/, '');
    const host = options.aliases[named] ?? named;
    const ours = known.ingresses?.all().filter(isOurs) ?? [];
    const target = targetOf(ours, { host, path: incoming.url ?? '/', headers: incoming.headers }, Math.random());
    const address = target && addressOf(target.serviceNamespace, target.serviceName);
    return target === undefined || address === undefined ? undefined : { ...target, address };
  };
  const server = createProxy(route);
  server.listen(80, options.address);
  await once(server, 'listening');
  return async () => {
    await controller.stop();
    server.close();
    server.closeAllConnections();
  };
};

const conditions = ['NetworkConfigured', 'LoadBalancerReady', 'Ready'] as const;

const isReady = ({ metadata, status = {} }: KnativeIngress): boolean =>
  status.observedGeneration === metadata.generation &&
  conditions.every((type) => status.conditions?.some((one) => one.type === type && one.status === 'True'));

/** An address, not a name: Knative then makes a headless Service with it as its endpoint. */
const readyStatus = ({ metadata }: KnativeIngress, ip: string): object => {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
  return {
    observedGeneration: metadata.generation,
    conditions: conditions.map((type) => ({ type, status: 'True', lastTransitionTime })),
    publicLoadBalancer: { ingress: [{ ip }] },
    privateLoadBalancer: { ingress: [{ ip }] },
  };
};
