// Every function in one process, with the broker, the sources and the tick: for clusters without Knative. Called by index.ts.
import { setTimeout as wait } from 'node:timers/promises';
import { createHandlerPost } from '#events/post.ts';
import { sleep } from '#events/sender.ts';
import { buildEventing } from '#infra/generate/declared.ts';
import { type Bus, brokerUrl, createBus, startSenders } from '#infra/local/eventing.ts';
import { createFunctions } from '#infra/local/functions.ts';
import type { SingleConfig } from '#infra/single/config.ts';
import { startLater, untilAdmission } from '#infra/single/admission.ts';
import { leaseTimes, startElection } from '#infra/single/leader.ts';
import { type ServerParts, startAdmission, startPlainServers, startUploadApi } from '#infra/single/servers.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { serveCertificate } from '#shared/certificate/served.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { lingerMs } from '#shared/runtime/serve.ts';

/** Milliseconds between two checks for a kind that the cluster lacks. */
const lookAgainMs = 30_000;
/** A loop of the election that has not turned for so long hangs. */
const hangsAfterMs = 12 * leaseTimes.turn;
/** Milliseconds for deliveries in progress at the end; what is left is found again by the next leader. */
const drainMs = 15_000;

export interface Single {
  /** Leaves the Services and the Lease, finishes what runs, and closes everything. */
  readonly stop: () => Promise<void>;
}

/** Resolves when everything listens that needs no certificate; the leader makes that of admission. */
export const startSingle = async (config: SingleConfig, log: Logger): Promise<Single> => {
  const kube = createKubeClient(loadKubeConfig(config.kubeconfig));
  const manifests = buildEventing() as readonly KubeObject[];
  const sink = brokerUrl(manifests, config.eventsPort);
  // Functions send events, and events reach functions: one of them has to be there first.
  let bus: Bus | undefined;
  const post = createHandlerPost((request) => bus?.ingress.fetch(request) ?? new Response(undefined, { status: 503 }));
  const functions = await createFunctions({ config: { ...config, sink }, connect: async () => kube, post, log });
  bus = createBus({ manifests, subscribers: functions.subscribers, log });
  const lead = () =>
    startLater(
      (signal) => untilAdmission({ kube, ownCertificate: config.ownCertificate, signal, log }),
      () => {
        const senders = startSenders({ kube, manifests, sink, post, replay: 'add', lookAgainMs, log });
        // Whatever became due while nobody led.
        senders.tick();
        return senders;
      },
    );
  const now = (): number => performance.timeOrigin + performance.now();
  const election = startElection({ kube, identity: config.identity, lead, log, now, sleep });
  const isAlive = (): boolean => now() - election.lastTurn() < hangsAfterMs;
  const certificate = serveCertificate(kube, log);
  const parts: ServerParts = { config, kube, functions, bus, isReady: certificate.isServed, isAlive, log };
  const servers = [
    ...(await startPlainServers(parts)),
    await startAdmission(parts, certificate),
    ...(await startUploadApi(parts)),
  ];
  const { broker } = bus;
  return {
    stop: async () => {
      for (const server of servers) server.leave();
      certificate.stop();
      await Promise.all([election.stop(), wait(lingerMs)]);
      await Promise.all(servers.map((server) => server.close()));
      await Promise.race([broker.idle().then(functions.idle), wait(drainMs, undefined, { ref: false })]);
      await broker.stop();
    },
  };
};
