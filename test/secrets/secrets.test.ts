// No credential leaves its Secret: each way to configure one has separate values, is run to its end, and all outputs are searched for them.
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { startEventing } from '#infra/local/eventing.ts';
import { secrets } from '#shared/api/foreign/core.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { type Stage, scenes } from '#test/secrets/scenes.ts';
import { type Texts, filesOf, objectsOf, shown, watchProcesses } from '#test/secrets/outputs.ts';
import { type Ending, type Places, mayGive, noWays, ways } from '#test/secrets/ways.ts';
import { runBullion } from '#test/support/bullion.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';
import { type Collector, startCollector } from '#test/support/collector.ts';
import { noise } from '#test/support/disk.ts';
import { type ForwardProxy, startForwardProxy } from '#test/support/forward-proxy.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { fieldOf, texts } from '#test/support/texts.ts';

const endings: readonly Ending[] = ['ok', 'denied'];
const disk = noise('secrets', 2 ** 20);
const bucket = 'private';

/** Echoes the request, also like an object store: in its code and its message. */
const repeated = ({ path, headers }: { readonly path: string; readonly headers: object }): string => {
  const text = `you asked for ${path} with ${JSON.stringify(headers).replaceAll(/[<>&]/g, ' ')}`;
  const isSigned = JSON.stringify(headers).includes('AWS4-HMAC');
  return isSigned ? `<Error><Code>${text}</Code><Message>${text}</Message></Error>` : text;
};

describe('credentials', { timeout: 600_000 }, () => {
  /** Credential → how it was configured. */
  const planted = new Map<string, string>();
  const plant = (what: string): string => {
    const word = `w${randomBytes(9).toString('hex')}`;
    planted.set(word, what);
    return word;
  };
  const outputs: Texts = new Map();
  let cluster: TestCluster;
  let origin: Origin;
  let proxy: ForwardProxy;
  let collector: Collector;
  const processes = watchProcesses();
  const ended: string[] = [];

  const startAll = async (): Promise<void> => {
    collector = await startCollector();
    origin = await startOrigin((request) =>
      request.path.startsWith('/ok')
        ? fileAnswer(request, disk)
        : {
            status: 403,
            body: Buffer.from(repeated(request)),
            headers: { 'content-type': 'text/plain', 'www-authenticate': 'Basic realm="x"' },
          },
    );
    proxy = await startForwardProxy({ ports: { 'images.example:80': origin.port } });
    let heard = 0;
    cluster = await startTestCluster({
      tickSeconds: 2,
      functionEnvironment: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        // A URL with a password is rejected: Jobs would expose it.
        HTTP_PROXY: proxy.url,
        NO_PROXY: '127.0.0.1,localhost',
        NOTIFICATION_TOKEN: plant('the token of notifications'),
        // Notifications of the store do not include that token: its objects are found by listings.
        LIST_SECONDS: '1',
      },
      startEventing: (options) => {
        const listen =
          (name: string, subscriber: unknown) =>
          async (request: Request): Promise<Response> => {
            const body = await request.clone().text();
            heard += 1;
            outputs.set(`event ${heard} to ${name}`, `${JSON.stringify([...request.headers])} ${bodyShown(body)}`);
            const answer = await (subscriber as (request: Request) => Promise<Response>)(request);
            outputs.set(`answer ${heard} of ${name}`, await answer.clone().text());
            return answer;
          };
        const subscribers = new Map([...options.subscribers].map(([name, one]) => [name, listen(name, one)]));
        return startEventing({ ...options, subscribers: subscribers as never });
      },
    });
  };

  /** An event about an object contains that object. */
  const bodyShown = (body: string): string => {
    try {
      const data = JSON.parse(body) as KubeObject;
      return JSON.stringify(
        typeof data.kind === 'string' && data.metadata !== undefined ? (shown(data) ?? data.metadata) : data,
      );
    } catch {
      return body;
    }
  };

  const createWays = async (): Promise<void> => {
    const places: Places = {
      origin: origin.url,
      behindProxy: 'http://images.example',
      store: cluster.objectStore.url,
      bucket,
    };
    let count = 0;
    for (const [what, way] of Object.entries(ways)) {
      for (const ending of way.works === true ? endings : (['denied'] as const)) {
        count += 1;
        const name = `way-${count}`;
        const part = (text: string) => plant(`${what}: ${text} (${ending})`);
        const encode = (value: string) => Buffer.from(value).toString('base64');
        const data = { accessKeyId: part('accessKeyId'), secretKey: part('secretKey') };
        const headers = { header: `X-Secret: ${part('Secret of headers')}` };
        for (const [secret, texts] of [
          [name, data],
          [`${name}-headers`, headers],
        ] as const) {
          const encoded = Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, encode(value)]));
          await cluster.kube.create(secrets, {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: secret, namespace },
            data: encoded,
          });
        }
        const draft = way.object(places, ending, part);
        const text = JSON.stringify({ ...draft, metadata: { ...draft.metadata, name, namespace } });
        const object = JSON.parse(
          text
            .replaceAll('SECRET', name)
            .replaceAll('HEADERS', `${name}-headers`)
            .replaceAll(/"(managedDataSource|displayName)":"x"/g, `"$1":"${name}"`),
        ) as KubeObject;
        const type = servedKinds.find(
          ({ type: one }) => one.kind === object.kind && apiVersionOf(one) === object.apiVersion,
        )!.type;
        // A password in a URL is rejected, with a message without it.
        const withPassword = JSON.parse(
          JSON.stringify({ ...object, metadata: { ...object.metadata, name: `${name}-p` } }).replaceAll(
            /(http|docker):\/\/(?=127)/g,
            (scheme) => `${scheme}user:${part('password of a URL')}@`,
          ),
        ) as KubeObject;
        const answer = await cluster.kube.create(type, withPassword).catch((error: unknown) => error);
        outputs.set(
          `answer to ${what} (${ending}) with a password`,
          answer instanceof Error ? `${answer.message} ${answer.stack}` : 'taken',
        );
        await cluster.kube.create(type, object);
        const last = async (): Promise<string> => {
          const { status } = ((await cluster.kube.get(type, { namespace, name })) ?? {}) as { status?: unknown };
          return JSON.stringify(status) ?? '';
        };
        const isOver = (status: string) =>
          /"(Available|Imported|Succeeded|Failed|Completed|Error|UpToDate)"|PollFailed|"outcome":"Failed"|403|denied|Denied/.test(
            status,
          );
        const deadline = Date.now() + 60_000;
        while (!isOver(await last()) && Date.now() < deadline) await sleep(100);
        if (isOver(await last())) ended.push(what);
        else outputs.set(`${what} ${ending}, not ended`, await last());
        for (const args of [
          ['why', `${object.kind.toLowerCase()}/${name}`],
          ['why', name],
        ]) {
          const said = await runBullion([...args, '--kubeconfig', cluster.kubeconfigPath]);
          outputs.set(`bullion ${args.join(' ')}`, said.out + said.err);
        }
      }
    }
  };

  const playScenes = async (s3: S3Client): Promise<void> => {
    const until: Stage['until'] = async (what, isSo) => {
      const deadline = Date.now() + 180_000;
      while (!(await isSo())) {
        if (Date.now() > deadline) throw new Error(`not within three minutes: ${what}`);
        await sleep(100);
      }
    };
    const note = (where: string, text: string): void => void outputs.set(where, text);
    const stage = { cluster, s3, disk: `${origin.url}/ok`, echoStore: origin.url, plant, note, until };
    for (const play of scenes) await play(stage);
  };

  const useTokens = async (): Promise<void> => {
    const path = `/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/${namespace}/uploadtokenrequests`;
    const request = {
      apiVersion: 'upload.cdi.kubevirt.io/v1beta1',
      kind: 'UploadTokenRequest',
      metadata: { name: 'way-1', namespace },
      spec: { pvcName: 'way-1' },
    };
    const { status } = await cluster.kube.raw<{ readonly status: { readonly token: string } }>({
      method: 'POST',
      path,
      body: request,
    });
    planted.set(status.token, 'an upload token');
    const wrong = plant('a token that nobody issued');
    for (const [what, token] of [
      ['own', status.token],
      ['wrong', wrong],
    ] as const) {
      for (const [where, url, init] of [
        [
          'header',
          `${cluster.transferUrl}/v1beta1/upload`,
          { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: 'x' },
        ],
        ['address', `${cluster.transferUrl}/downloads/datavolumes/${namespace}/way-1?token=${token}`, {}],
      ] as const) {
        const answer = await fetch(url, init);
        outputs.set(
          `transfer to a token that is ${what}, in the ${where}`,
          `${JSON.stringify([...answer.headers])} ${await answer.text()}`,
        );
      }
    }
    // The keys of the functions' own accounts, and the signing keys of their Jobs.
    for (const name of ['initialize', 'sidecar-sync', 'transfer', 'cron-tick']) {
      const file = parse(await readFile(`${cluster.dataDir}/accounts/${name}.kubeconfig`, 'utf8')) as {
        users: { user: { token: string } }[];
      };
      planted.set(file.users[0]!.user.token, `the token of ${name}`);
    }
    for (const { data = {}, metadata } of (await cluster.kube.list(secrets)).items) {
      const key = data['report-key'];
      if (key !== undefined)
        planted.set(Buffer.from(key, 'base64').toString().split('\n')[1]!, `report key ${metadata.name}`);
    }
    planted.set(storeKey, 'the key of the object store');
  };
  let storeKey = '';

  beforeAll(async () => {
    await startAll();
    const { data = {} } = (await cluster.kube.get(secrets, { namespace, name: 'object-store' }))!;
    storeKey = atob(data['secretKey'] ?? '');
    const credentials = { accessKeyId: atob(data['accessKeyId'] ?? ''), secretAccessKey: storeKey };
    const s3 = new S3Client({
      endpoint: cluster.objectStore.url,
      region: cluster.objectStore.region,
      forcePathStyle: true,
      credentials,
    });
    for (const Bucket of [bucket, 'images']) await s3.send(new CreateBucketCommand({ Bucket }));
    await createWays();
    await playScenes(s3);
    s3.destroy();
    await useTokens();
    for (const [where, text] of await objectsOf(cluster.kube)) outputs.set(where, text);
    outputs.set('traces', JSON.stringify(collector.spans));
    outputs.set('metrics', await (await fetch(cluster.metricsUrl)).text());
    await processes.stop();
    for (const [where, text] of [...processes.texts, ...(await filesOf(cluster.dataDir))]) outputs.set(where, text);
  }, 1_200_000);
  afterAll(async () => {
    await processes.stop();
    await cluster?.close();
    await Promise.all([origin?.close(), proxy?.close(), collector?.close()]);
  });

  it('are in no object, log, event, trace, metric, argument, environment, answer, output or remaining file', () => {
    const leaks = [...planted].flatMap(([word, what]) =>
      [...outputs]
        .filter(([, text]) => text.includes(word) || text.includes(Buffer.from(word).toString('base64')))
        .map(([where, text]) => {
          const at = text.indexOf(word);
          return `${what}: in ${where}: …${text.slice(Math.max(0, at - 60), at + 12)}…`;
        }),
    );
    expect(leaks).toEqual([]);
  });

  it('are used: every scenario was completed, and the values were shown to those they are for', () => {
    const asked = JSON.stringify(origin.requests);
    const shownWords = [...planted].filter(
      ([word]) => asked.includes(word) || asked.includes(Buffer.from(`user:${word}`).toString('base64')),
    );
    expect(shownWords.length).toBeGreaterThan(15);
    expect(proxy.requests.length).toBeGreaterThan(0);
    expect(processes.texts.size).toBeGreaterThan(Object.keys(ways).length);
    expect([...outputs.keys()].filter((where) => where.startsWith('event ')).length).toBeGreaterThan(20);
    expect([...outputs].filter(([where]) => where.endsWith('not ended'))).toEqual([]);
    expect(ended.length).toBe(Object.values(ways).reduce((sum, { works }) => sum + (works === true ? 2 : 1), 0));
  });
});

describe('the scenarios', () => {
  it('cover every text that may give a credential: add a way or a reason, or the text to test/support/texts.ts', () => {
    const given = texts.filter(mayGive).map(fieldOf);
    const covered = new Set(Object.values(ways).flatMap((way) => way.fields));
    expect(given.filter((field) => !covered.has(field) && !noWays.some(({ of }) => of.test(field)))).toEqual([]);
    expect([...covered].filter((field) => !given.includes(field))).toEqual([]);
    expect(noWays.filter(({ of }) => !given.some((field) => of.test(field)))).toEqual([]);
  });
});
