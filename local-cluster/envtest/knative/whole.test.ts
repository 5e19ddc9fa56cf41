// Knative's adapter, ping and broker-filter call the functions, on a real API server: a whole import, a golden update, and deletions.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { findKnative } from '#local-cluster/envtest/knative/assets.ts';
import { createAccounts } from '#infra/local/accounts.ts';
import { isFreeEverywhere } from '#local-cluster/free-ports.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { loadKubeConfig } from '#shared/clients/kube/create.ts';
import {
  type TestCluster,
  anImage,
  deleteImage,
  images,
  leftOvers,
  namespace,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenFlow, createGoldenFlow, isUpToDate } from '#test/support/golden.ts';
import { type Delivered, createKnativeEventing } from '#test/support/knative-eventing.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { takeTurn } from '#test/support/turn.ts';

const knative = findKnative(process.env);
const isBuilt = findAssets(process.env) !== undefined && knative !== undefined;
// Before the port is checked: others that need it have their turn first.
const handOn = isBuilt ? await takeTurn('knative-adapter') : undefined;
const canRun = isBuilt && (await isFreeEverywhere(8080));
if (!canRun) await handOn?.();
if (!canRun) {
  const why = isBuilt ? 'its adapter needs port 8080' : 'run `npm run envtest` and `npm run envtest:knative`';
  console.warn(`test with all of Knative skipped: ${why}`);
}

/** Every two seconds, in Knative's cron format. */
const schedule = '*/2 * * * * *';

describe.skipIf(!canRun)('functions called by Knative itself', { timeout: 240_000 }, () => {
  const delivered: Delivered[] = [];
  let cluster: TestCluster;
  let origin: Origin;
  let flow: GoldenFlow;
  let disk = { bytes: noise('first', 256 * 1024), etag: '"1"' };
  beforeAll(async () => {
    origin = await startOrigin((request) => fileAnswer(request, disk.bytes, { etag: disk.etag }));
    cluster = await startTestCluster({
      apiServer: 'real',
      startEventing: createKnativeEventing(knative!, schedule, (one) => delivered.push(one)),
    });
    flow = createGoldenFlow(cluster.kube, namespace);
  }, 240_000);
  afterAll(async () => {
    await cluster?.close();
    await origin?.close();
    await handOn?.();
  });

  const typesTo = (name: string): ReadonlySet<string> =>
    new Set(delivered.filter(({ to }) => to === name).map(({ type }) => type));

  it('import an image', async () => {
    const { state } = await settle(cluster.kube, anImage('plain', { source: { http: `${origin.url}/disk.raw` } }), 120);
    expect(state).toBe('Available');
  });

  const versionInUse = (cron: DataImportCron | undefined): string | undefined => cron?.status?.lastImportedPVC?.name;

  it('update a golden image to a new version', async () => {
    const source = { http: { url: `${origin.url}/golden.raw` } };
    const storage = { storageClassName: 'local', resources: { requests: { storage: '16Mi' } } };
    await flow.aCron('golden', { template: { spec: { source, storage } } });
    const first = versionInUse(await flow.until(dataImportCronKind.type, 'golden', isUpToDate));
    disk = { bytes: noise('second', 256 * 1024), etag: '"2"' };
    await flow.pollNow('golden');
    const isNewer = (cron: DataImportCron | undefined) => isUpToDate(cron) && versionInUse(cron) !== first;
    const second = versionInUse(await flow.until(dataImportCronKind.type, 'golden', isNewer));
    expect([typeof first, typeof second]).toEqual(['string', 'string']);
  });

  it('delete all of it again', async () => {
    await flow.remove(dataImportCronKind.type, 'golden');
    await flow.until(dataImportCronKind.type, 'golden', (cron) => cron === undefined);
    const { items } = await cluster.kube.list(dataVolumes, { namespace });
    for (const { metadata } of items) await flow.remove(dataVolumes, metadata.name);
    await deleteImage(cluster.kube, 'plain', 120);
    expect((await cluster.kube.list(images, { namespace })).items).toEqual([]);
    expect(await leftOvers(cluster.kube, cluster.dataDir, 60)).toEqual([]);
  });

  it("receive changes of objects and children, ticks, and each other's events", () => {
    expect(typesTo('initialize')).toContain('dev.knative.apiserver.resource.add');
    expect(typesTo('sidecar-sync')).toContain('dev.knative.apiserver.resource.update');
    expect(typesTo('sidecar-sync')).toContain('dev.bullion.transfer.progressed');
    expect(typesTo('cron-tick')).toEqual(new Set(['dev.knative.sources.ping']));
    const kinds = new Set(delivered.filter(({ to }) => to === 'sidecar-sync').map(({ kind }) => kind));
    expect(kinds).toContain('Job');
    // What Knative would not accept, or would repeat without need.
    expect(
      [...new Set(delivered.map(({ status }) => status))].filter((status) => ![200, 204, 503].includes(status)),
    ).toEqual([]);
  });

  it('are called with tokens that Knative got from the API server, while other callers are rejected', async () => {
    const { url } = delivered.find(({ to }) => to === 'initialize')!;
    const options = {
      kubeconfigPath: cluster.kubeconfigPath,
      namespace: systemNamespace,
      dir: `${cluster.dataDir}/strangers`,
    };
    const { transfer } = await createAccounts(cluster.kube, ['transfer'], options);
    const token = loadKubeConfig(transfer).getCurrentUser()?.token ?? '';
    const statusWith = async (headers: Record<string, string>) =>
      (await fetch(url, { method: 'POST', headers, body: '{}' })).status;
    expect(token.split('.')).toHaveLength(3);
    // A token of the cluster, but not for this function.
    expect([await statusWith({}), await statusWith({ authorization: `Bearer ${token}` })]).toEqual([401, 401]);
  });
});
