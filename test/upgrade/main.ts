// `npm run record [-- --to <folder>]`: makes the record of this version: objects of all kinds on a local cluster, finished and in the middle.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startCluster } from '#infra/local/cluster.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { release } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { startOrigin } from '#test/support/origin.ts';
import { until } from '#test/support/until.ts';
import { readRecord, writeRecord } from '#test/upgrade/record.ts';
import { answerTo, namespace, scene } from '#test/upgrade/scene.ts';

const { values } = parseArgs({
  options: { to: { type: 'string', default: join(import.meta.dirname, release) } },
});
const dataDir = await mkdtemp(join(tmpdir(), 'bullion-record-'));
const origin = await startOrigin(answerTo('before'));
const place = { dataDir, origin: origin.url };
const cluster = await startCluster({
  dataDir,
  apiServer: 'embedded',
  environment: process.env,
  tickSeconds: 5,
  backOffFactor: 0.01,
});
const { kube } = cluster;
try {
  await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  for (const step of scene) {
    for (const { type, name, metadata, spec } of step)
      await kube.create(type, {
        apiVersion: apiVersionOf(type),
        kind: type.kind,
        metadata: { ...metadata, namespace, name },
        spec: spec(origin.url),
      });
    await Promise.all(
      step.map(({ type, name, isLeft }) =>
        until(kube, type, { namespace, name }, (object) => object !== undefined && isLeft(object), 100),
      ),
    );
  }
  const text = await readRecord(kube, place);
  await cluster.stop();
  await writeRecord(values.to, text, place);
  process.stdout.write(`${values.to}\n`);
} finally {
  await cluster.stop();
  await origin.close();
  await rm(dataDir, { recursive: true, force: true });
}
