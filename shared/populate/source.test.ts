// The table of sources: the pod of a worker contains everything in its configuration, and each type is treated as what it is.
import { describe, expect, it } from 'vitest';
import {
  type JobSource,
  type Source,
  type SourceType,
  hostOfSource,
  isCopied,
  isFetched,
  isForJob,
  isFromServer,
  isOneOf,
  isSent,
  mountsOfSource,
  sources,
  toTransferSource,
} from '#shared/populate/source.ts';
import { readMirrors } from '#shared/clients/http/mirrors.ts';
import { readRegistriesConf } from '#shared/clients/registry/mirrors.ts';
import { TransferSource } from '#shared/transfer/spec.ts';
import { imageRef, testSettings } from '#test/support/builders.ts';

const access = { secretName: 'keys', bundleName: 'authorities' } as const;

interface Sample<S> {
  readonly arrives: 'fetched' | 'sent' | 'copied' | 'restored';
  readonly isServer: boolean;
  /** With everything that can be mounted for it. */
  readonly of: readonly S[];
}

const samples: { readonly [T in SourceType]: Sample<Source<T>> } = {
  http: {
    arrives: 'fetched',
    isServer: true,
    of: [
      { type: 'http', url: 'https://images.example/disk' },
      { type: 'http', url: 'https://images.example/disk', identity: { cloud: 'azure', tenant: 't', client: 'c' } },
      { type: 'http', url: 'https://images.example/disk', ...access, headerSecrets: ['first', 'second'] },
    ],
  },
  registry: {
    arrives: 'fetched',
    isServer: true,
    of: [{ type: 'registry', url: 'docker://registry.example/disk', ...access }],
  },
  s3: {
    arrives: 'fetched',
    isServer: true,
    of: [{ type: 's3', endpoint: 'https://s3.example', region: 'here', bucket: 'b', key: 'k', ...access }],
  },
  object: { arrives: 'fetched', isServer: true, of: [{ type: 'object', bucket: 'b', key: 'k' }] },
  nfs: {
    arrives: 'fetched',
    isServer: false,
    of: [{ type: 'nfs', server: 'nfs.example', path: '/exports', key: 'disk.img' }],
  },
  claim: {
    arrives: 'fetched',
    isServer: false,
    of: [
      { type: 'claim', claimName: 'golden', volumeMode: 'Block' },
      { type: 'claim', claimName: 'golden', volumeMode: 'Filesystem' },
      { type: 'claim', claimName: 'golden', volumeMode: 'Filesystem', holdsFiles: true },
    ],
  },
  upload: { arrives: 'sent', isServer: false, of: [{ type: 'upload' }] },
  blank: { arrives: 'fetched', isServer: false, of: [{ type: 'blank' }] },
  'export-from-volume': {
    arrives: 'copied',
    isServer: false,
    of: [{ type: 'export-from-volume', namespace: 'default', claimName: 'golden' }],
  },
  clone: { arrives: 'copied', isServer: false, of: [{ type: 'clone', namespace: 'default', imageName: 'golden' }] },
  restore: { arrives: 'restored', isServer: false, of: [{ type: 'restore', url: 's3://bucket@region/?backup=b' }] },
};

const all: readonly Source[] = Object.values(samples).flatMap(({ of }): readonly Source[] => of);
const ofJobs: readonly JobSource[] = all.filter(isForJob);
const context = {
  owner: imageRef,
  settings: {
    ...testSettings,
    transferUrl: 'http://transfer.example',
    objectStore: { endpoint: 'http://store.example', region: 'here', pathStyle: true, secretName: 'store' },
  },
};

/** Every text of a spec that is a path of the pod. */
const pathsIn = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return value.startsWith('/') ? [value] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(pathsIn) : [];
};

describe('a source of a Job', () => {
  it.each(ofJobs.map((source) => [source.type, source] as const))(
    '%s: mounts every path that the worker is configured with, and nothing else',
    (_type, source) => {
      const spec = toTransferSource(source, context);
      const { volumes, mounts, devices } = mountsOfSource(source, context);
      expect(TransferSource.parse(spec)).toEqual(spec);
      const places = [...mounts.map(({ mountPath }) => mountPath), ...devices.map(({ devicePath }) => devicePath)];
      const isIn = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`);
      const paths = pathsIn(spec);
      expect(paths.filter((path) => !places.some((place) => isIn(path, place)))).toEqual([]);
      expect(places.filter((place) => !paths.some((path) => isIn(path, place)))).toEqual([]);
      expect([...mounts, ...devices].map(({ name }) => name)).toEqual(volumes.map(({ name }) => name));
    },
  );

  it('that is an object of the installation is refused where there is no store, an upload where nothing receives it', () => {
    const bare = { owner: imageRef, settings: testSettings };
    expect(() => toTransferSource({ type: 'object', bucket: 'b', key: 'k' }, bare)).toThrow('no object store');
    expect(() => toTransferSource({ type: 'upload' }, bare)).toThrow('TRANSFER_URL');
  });
});

describe('the host of a source', () => {
  const mirrors = readMirrors({
    source: [
      { prefix: 'https://images.example', mirror: [{ location: 'https://near.example/images' }] },
      { prefix: 'https://s3.example', mirror: [{ location: 'https://near.example' }] },
      { prefix: 'http://store.example', mirror: [{ location: 'https://near.example/store' }] },
    ],
  });
  const mirrored = {
    ...context.settings,
    registryRules: readRegistriesConf({
      registry: [{ location: 'registry.example', mirror: [{ location: 'mirror.example:5000/copies' }] }],
    }),
  };

  it('is where the bytes come from: the first mirror, if there is one', () => {
    const hosts: Readonly<Record<JobSource['type'], string | undefined>> = {
      http: 'images.example',
      registry: 'registry.example',
      s3: 's3.example',
      object: 'store.example',
      nfs: undefined,
      claim: undefined,
      upload: undefined,
      blank: undefined,
    };
    expect(Object.fromEntries(ofJobs.map((source) => [source.type, hostOfSource(source, context)]))).toEqual(hosts);
    const [image] = samples.registry.of;
    expect(hostOfSource(image!, { ...context, settings: mirrored })).toBe('mirror.example:5000');
    const near = { ...context, settings: { ...context.settings, mirrors } };
    const hostsNear = [samples.http.of[0]!, samples.s3.of[0]!, samples.object.of[0]!].map((source) =>
      hostOfSource(source, near),
    );
    expect(hostsNear).toEqual(['near.example', 'near.example', 'near.example']);
  });

  it('of files with mirrors is passed to the worker with their URLs, in order', () => {
    const near = { ...context, settings: { ...context.settings, mirrors } };
    const mirrorsOf = (source: JobSource) => {
      const spec = toTransferSource(source, near);
      return 'mirrors' in spec ? spec.mirrors : undefined;
    };
    expect([samples.http.of[0]!, samples.s3.of[0]!, samples.object.of[0]!].map(mirrorsOf)).toEqual([
      ['https://near.example/images/disk'],
      ['https://near.example/b/k'],
      ['https://near.example/store/b/k'],
    ]);
    const broken = { ...context, settings: { ...context.settings, mirrorFault: 'mirrors.toml is not valid' } };
    expect(() => toTransferSource(samples.http.of[0]!, broken)).toThrow('mirrors.toml is not valid');
  });
});

describe('a type of source', () => {
  it.each(all.map((source) => [source.type, source] as const))('%s: is what it is to everybody', (type, source) => {
    const { arrives, isServer } = samples[type];
    expect(isFromServer(source)).toBe(isServer);
    expect({ isFetched: isFetched(source), isSent: isSent(source), isCopied: isCopied(source) }).toEqual({
      isFetched: arrives === 'fetched',
      isSent: arrives === 'sent',
      isCopied: arrives === 'copied',
    });
    expect(isForJob(source)).toBe(arrives === 'fetched' || arrives === 'sent');
    expect(all.filter(isOneOf([type, 'restore']))).toEqual(
      all.filter((other) => other.type === type || other.type === 'restore'),
    );
  });

  it('is nothing where there is no source', () => {
    const holds = [isFromServer, isFetched, isSent, isCopied, isForJob, isOneOf(['s3', 'restore'])];
    expect(holds.filter((hold) => hold(undefined))).toEqual([]);
  });

  it('has a name of its own', () => {
    const names = Object.values(sources).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
