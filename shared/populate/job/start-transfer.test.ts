// Starting a transfer: nothing that may be a credential leaves its Secret, and a start that is cut short leaves nothing behind.
import { describe, expect, it } from 'vitest';
import { type Secret, jobs, secrets } from '#shared/api/foreign/core.ts';
import { removeAbandoned, startTransfer } from '#shared/populate/job/start-transfer.ts';
import { type TransferRequest, buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import type { JobSource } from '#shared/populate/source.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { imageRef, testSettings, testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { specOf } from '#test/support/transfer-secret.ts';

const url = (word: string) => `https://u:${word}-userinfo@images.example/disk?sig=${word}-query`;
const s3 = (word: string) => ({
  type: 's3' as const,
  endpoint: url(word),
  region: 'here',
  bucket: 'b',
  key: 'k',
  caBundle: `${word}-ca`,
});
const claim = { type: 'claim', claimName: 'golden', volumeMode: 'Block' } as const;

/** Every kind of source, with a word wherever it could be given a credential, and how many such words there are. A new kind needs a row. */
const sources: {
  readonly [T in JobSource['type']]: { readonly source: JobSource & { type: T }; readonly words: number };
} = {
  http: { source: { type: 'http', url: url('plant'), headers: ['Authorization: plant-header'] }, words: 3 },
  // Its reference has no field for one: a URL with user info is rejected.
  registry: { source: { type: 'registry', url: 'docker://registry.example/disk' }, words: 0 },
  s3: { source: s3('plant'), words: 3 },
  object: { source: { type: 'object', bucket: 'b', key: 'k' }, words: 2 },
  claim: { source: claim, words: 0 },
  nfs: { source: { type: 'nfs', server: 'nfs.example', path: '/exports', key: 'disk.img' }, words: 0 },
  upload: { source: { type: 'upload' }, words: 1 },
  blank: { source: { type: 'blank' }, words: 0 },
};

/** Every other way to configure one: the target, and the settings of an operator. */
const ways: readonly (readonly [string, Partial<TransferRequest>, Partial<PopulateSettings>, number])[] = [
  [
    'an export',
    { mode: 'export', source: claim, export: { object: s3('plant'), form: { format: 'raw', compression: 'none' } } },
    {},
    3,
  ],
  ['a backup', { mode: 'backup', source: claim, backup: { into: s3('plant') } }, {}, 3],
  ['a download', { mode: 'serve', source: claim }, { transferUrl: url('plant') }, 1],
  ['proxies', {}, { proxies: { http: url('plant'), https: url('plant'), none: [], ca: 'plant-ca' } }, 5],
  ['a collector of traces', {}, { traceEndpoint: url('plant') }, 2],
  ['a sink', {}, { eventSink: url('plant') }, 2],
];

const settings: PopulateSettings = {
  ...testSettings,
  objectStore: { endpoint: url('plant'), region: 'here', pathStyle: true },
};

const begin = () => {
  const kube = createMemoryKube({ now: () => testTime });
  const build = (over: Partial<TransferRequest>, more: Partial<PopulateSettings> = {}) =>
    buildTransferJob(
      { mode: 'inspect', owner: imageRef, source: { type: 'blank' }, retries: 1, ...over },
      {
        ...settings,
        ...more,
      },
    );
  return { kube, build };
};

const plantsIn = (text: string): number => text.match(/plant-\w+/g)?.length ?? 0;
const filesOf = ({ data = {} }: Secret): string =>
  Object.values(data)
    .map((value) => Buffer.from(value, 'base64').toString())
    .join('\n');

const rows: typeof ways = [
  ...Object.entries(sources).map(
    ([type, { source, words }]) => [`source ${type}`, { source }, { transferUrl: url('plant') }, words] as const,
  ),
  ...ways,
];

describe('the result of starting a transfer', () => {
  it.each(rows)(
    '%s: shows no credential outside its Secret, which the Job owns',
    async (_what, request, more, words) => {
      const { kube, build } = begin();
      const job = build(request, more);
      await startTransfer(kube, job);
      const [made] = kube.all(jobs);
      const [secret, ...others] = kube.all(secrets);
      expect(others).toEqual([]);
      const shown = JSON.stringify(kube.all().filter(({ kind }) => kind !== 'Secret'));
      expect(plantsIn(shown)).toBe(0);
      expect(plantsIn(filesOf(secret!))).toBe(words);
      expect(made!.spec.suspend).toBe(false);
      expect(secret!.metadata.ownerReferences).toMatchObject([{ kind: 'Job', uid: made!.metadata.uid }]);
      const mounted = made!.spec.template.spec.volumes?.filter(
        (volume) => volume.secret?.secretName === secret!.metadata.name,
      );
      expect(mounted).toHaveLength(1);
      // The worker combines both parts.
      const meant =
        job.spec.template.spec.containers[0]?.env?.find(({ name }) => name === 'BULLION_TRANSFER')?.value ?? '';
      expect(specOf(kube, made!)).toEqual(JSON.parse(meant));
      await kube.delete(jobs, made!.metadata);
      kube.collectGarbage();
      expect(kube.all()).toEqual([]);
    },
  );

  it.each([
    { verb: 'create', resource: 'secrets' },
    { verb: 'patch', resource: 'jobs' },
  ] as const)('is nothing where $verb $resource is refused', async (call) => {
    const { kube, build } = begin();
    kube.failNext(call, { error: new Denied('exceeded quota'), when: 'before' });
    await expect(startTransfer(kube, build({}))).rejects.toThrow('exceeded quota');
    kube.collectGarbage();
    expect(kube.all()).toEqual([]);
  });

  it('is removed by the tick after a minute when its start was interrupted', async () => {
    const { kube, build } = begin();
    kube.failNext({ verb: 'create', resource: 'secrets' }, { error: new Error('killed'), when: 'before' });
    kube.failNext({ verb: 'delete', resource: 'jobs' }, { error: new Error('killed'), when: 'before' });
    await expect(startTransfer(kube, build({}))).rejects.toThrow('killed');
    expect(kube.all(jobs)).toMatchObject([{ spec: { suspend: true } }]);
    await removeAbandoned(kube, testTime + 59_000);
    expect(kube.all(jobs)).toHaveLength(1);
    await removeAbandoned(kube, testTime + 60_000);
    expect(kube.all(jobs)).toEqual([]);
  });

  it('is not removed by the tick once it runs', async () => {
    const { kube, build } = begin();
    await startTransfer(kube, build({}));
    await removeAbandoned(kube, testTime + 3_600_000);
    expect(kube.all(jobs)).toHaveLength(1);
  });
});
