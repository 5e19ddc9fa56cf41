// Requests per second of each kind, on the image kind the product serves: schema, rules and status subresource are all at work.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { type Load, expectStatus, joinLoads, runLoad } from '#test/bench/api-server/load.ts';
import type { Kind, Server } from '#test/bench/api-server/servers.ts';
import type { Http } from '#test/support/api-server/http.ts';

const definition = new URL('../../../infra/crds/hypercloud.tmaxanc.com_virtualmachineimages.yaml', import.meta.url);
const apiVersion = 'hypercloud.tmaxanc.com/v1alpha1';
const images = `/apis/${apiVersion}/namespaces/default/virtualmachineimages`;

/** Objects of a listed page. */
const pageSize = 100;
/** Each server is asked in turns, so that both meet the same weather. */
const turns = 2;

interface Image {
  readonly metadata: Readonly<Record<string, unknown>>;
}

const buildImage = (name: string): Image & Record<string, unknown> => ({
  apiVersion,
  kind: 'VirtualMachineImage',
  metadata: { name, labels: { 'app.kubernetes.io/part-of': 'bench' } },
  spec: { source: { http: 'http://mirror.example.com/images/server.img' }, storageClassName: 'local' },
});

/** One kind of request; each client has an image of its own to change. */
interface Request {
  readonly name: string;
  readonly send: (http: Http, client: number, index: number) => Promise<unknown>;
}

const own = (client: number): string => `client-${client}`;

const update = async (http: Http, client: number, index: number): Promise<void> => {
  const path = `${images}/${own(client)}`;
  const live = JSON.parse(expectStatus(await http.call('GET', path), 200)) as Image;
  const metadata = { ...live.metadata, annotations: { turn: String(index) } };
  expectStatus(await http.call('PUT', path, { ...live, metadata }), 200);
};

const patchStatus = async (http: Http, client: number, index: number): Promise<void> => {
  const patch = { status: { phase: 'Downloading', progress: index % 100, size: index } };
  const path = `${images}/${own(client)}/status`;
  expectStatus(await http.call('PATCH', path, patch, 'application/merge-patch+json'), 200);
};

const requests = (round: string): readonly Request[] => [
  {
    name: 'create',
    send: async (http, _, index) => expectStatus(await http.call('POST', images, buildImage(`${round}-${index}`)), 201),
  },
  { name: 'get and update', send: update },
  { name: 'status patch', send: patchStatus },
  {
    name: 'get',
    send: async (http, client) => expectStatus(await http.call('GET', `${images}/${own(client)}`), 200),
  },
  {
    name: `list of ${pageSize}`,
    send: async (http) => expectStatus(await http.call('GET', `${images}?limit=${pageSize}`), 200),
  },
];

const prepare = async ({ http }: Server, clients: number): Promise<void> => {
  const crd = parse(await readFile(definition, 'utf8')) as unknown;
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expectStatus(await http.call('POST', crds, crd), 201);
  while ((await http.call('GET', images)).status !== 200) await sleep(100);
  for (let client = 0; client < clients; client += 1) {
    // A real server says 404 for a moment after it has said 200.
    while ((await http.call('POST', images, buildImage(own(client)))).status === 404) await sleep(100);
  }
};

export interface ThroughputOptions {
  readonly clients: number;
  /** Of each kind of request on each server. */
  readonly seconds: number;
}

/** Loads by kind of request and server. */
export const measureThroughput = async (
  servers: readonly Server[],
  { clients, seconds }: ThroughputOptions,
): Promise<ReadonlyMap<string, Readonly<Partial<Record<Kind, Load>>>>> => {
  for (const server of servers) {
    await prepare(server, clients);
    for (const { send } of requests('warm'))
      await runLoad(server, { clients, seconds: 0.5 }, (c, i) => send(server.http, c, i));
  }
  const results = new Map<string, Partial<Record<Kind, Load>>>();
  for (let turn = 0; turn < turns; turn += 1) {
    for (const { name, send } of requests(`turn-${turn}`)) {
      for (const server of servers) {
        const load = await runLoad(server, { clients, seconds: seconds / turns }, (c, i) => send(server.http, c, i));
        const before = results.get(name)?.[server.kind];
        const joined = joinLoads(before === undefined ? [load] : [before, load]);
        results.set(name, { ...results.get(name), [server.kind]: joined });
      }
    }
  }
  return results;
};
