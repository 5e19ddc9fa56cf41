// Every way to configure a credential in the schemas of the served kinds: a separate value for each, in a valid source and in one that rejects it.
import { type BackendName, backendNames } from '#shared/api/harvester/image.ts';
import { type Registration, backends } from '#shared/backends/registry.ts';
import type { Draft, Loose } from '#test/support/admission.ts';
import { type Text, isObjectName, meaningOf } from '#test/support/texts.ts';

/** Addresses while the test runs. */
export interface Places {
  /** Answers `/ok` with a disk, and everything else with 403 and the complete request. */
  readonly origin: string;
  /** The same, with a name that only the proxy resolves. */
  readonly behindProxy: string;
  readonly store: string;
  readonly bucket: string;
}

export type Ending = 'ok' | 'denied';

export interface Way {
  /** Fields, as `<kind> <path>`, that it covers. */
  readonly fields: readonly string[];
  /** Secrets by name: key to value. */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Unset: it can only be rejected here. */
  readonly works?: boolean;
  readonly object: (places: Places, ending: Ending, word: (part: string) => string) => Draft;
}

const storage = { resources: { requests: { storage: '16Mi' } }, storageClassName: 'local' };
const immediate = { annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' } };
const dataVolume = (source: Loose): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: immediate,
  spec: { source, storage },
});
const cron = (source: Loose): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataImportCron',
  metadata: {},
  spec: { schedule: '0 0 1 1 *', managedDataSource: 'x', template: { spec: { source, storage } } },
});
const secretUrl = (place: string, ending: string, word: (part: string) => string): string =>
  `${place}/${ending}?sig=${word('query')}`;
const harvesterImage = (spec: Loose): Draft => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  metadata: {},
  spec: { displayName: 'x', sourceType: 'download', retry: 0, targetStorageClassName: 'local', ...spec },
});
/** `SECRET` and `HEADERS` are placeholders for the names of Secrets that the test creates for each of them. */
/** Products other than stores are not reachable from the servers of the tests. */
const needsProduct = (name: BackendName): boolean => {
  const one: Registration = backends[name];
  return one.served && one.backend.needs !== undefined;
};

export const ways: Readonly<Record<string, Way>> = {
  'URL of a data volume': {
    fields: ['DataVolume spec.source.http.url'],
    works: true,
    object: ({ origin }, ending, word) => dataVolume({ http: { url: secretUrl(origin, ending, word) } }),
  },
  'headers of a data volume': {
    fields: ['DataVolume spec.source.http.extraHeaders[]', 'DataVolume spec.source.http.secretExtraHeaders[]'],
    works: true,
    object: ({ origin }, ending, word) =>
      dataVolume({
        http: {
          url: `${origin}/${ending}`,
          extraHeaders: [`X-Api: ${word('header')}`, `Authorization: Bearer ${word('bearer')}`],
          secretExtraHeaders: ['HEADERS'],
        },
      }),
  },
  'Secret of a data volume': {
    fields: ['DataVolume spec.source.http.secretRef'],
    works: true,
    object: ({ origin }, ending) => dataVolume({ http: { url: `${origin}/${ending}`, secretRef: 'SECRET' } }),
  },
  'Secret of a registry': {
    fields: ['DataVolume spec.source.registry.secretRef', 'DataVolume spec.source.registry.url'],
    object: ({ origin }) =>
      dataVolume({ registry: { url: `${origin.replace('http', 'docker')}/disk:1`, secretRef: 'SECRET' } }),
  },
  'Secret and URL of a store': {
    fields: ['DataVolume spec.source.s3.secretRef', 'DataVolume spec.source.s3.url'],
    object: ({ store, bucket }) => dataVolume({ s3: { url: `${store}/${bucket}/ok`, secretRef: 'SECRET' } }),
  },
  'Secret of a store that repeats what it is asked with': {
    fields: [],
    object: ({ origin }) => dataVolume({ s3: { url: `${origin}/bucket/denied`, secretRef: 'SECRET' } }),
  },
  'Secret and URL of an object of Google': {
    fields: ['DataVolume spec.source.gcs.secretRef', 'DataVolume spec.source.gcs.url'],
    works: true,
    object: ({ origin }, ending) => dataVolume({ gcs: { url: `${origin}/${ending}`, secretRef: 'SECRET' } }),
  },
  'URL behind a proxy': {
    fields: [],
    works: true,
    object: ({ behindProxy }, ending) => dataVolume({ http: { url: `${behindProxy}/${ending}` } }),
  },
  'URL of an image': {
    fields: ['VirtualMachineImage spec.source.http'],
    works: true,
    object: ({ origin }, ending, word) => ({
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: {},
      spec: { source: { http: secretUrl(origin, ending, word) }, storageClassName: 'local' },
    }),
  },
  'Secret of an image': {
    fields: ['VirtualMachineImage spec.source.secretRef'],
    works: true,
    object: ({ origin }, ending) => ({
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: {},
      spec: { source: { http: `${origin}/${ending}`, secretRef: 'SECRET' }, storageClassName: 'local' },
    }),
  },
  'Secret of an image, in an annotation': {
    fields: [],
    works: true,
    object: ({ origin }, ending) => ({
      ...harvesterImage({ backend: 'csi', url: `${origin}/${ending}` }),
      metadata: { annotations: { 'bullion.dev/secret-ref': 'SECRET' } },
    }),
  },
  ...Object.fromEntries(
    backendNames.map((backend): [string, Way] => [
      `URL of an image in ${backend}`,
      {
        fields: ['VirtualMachineImage spec.url'],
        works: !needsProduct(backend),
        object: ({ origin }, ending, word) =>
          harvesterImage({
            backend,
            url: secretUrl(origin, ending, word),
            ...(needsProduct(backend) ? { targetStorageClassName: 'longhorn' } : {}),
          }),
      },
    ]),
  ),
  'URLs and Secret of a cron': {
    fields: ['http.url', 'http.checksumURL', 'http.secretRef'].flatMap((field) => [
      `DataImportCron spec.template.spec.source.${field}`,
      `DataImportCron spec.source.${field}`,
    ]),
    works: true,
    object: ({ origin }, ending, word) => cron({ http: { url: secretUrl(origin, ending, word), secretRef: 'SECRET' } }),
  },
  'Secret of a cron of a registry': {
    fields: ['registry.url', 'registry.secretRef'].flatMap((field) => [
      `DataImportCron spec.template.spec.source.${field}`,
      `DataImportCron spec.source.${field}`,
    ]),
    object: ({ origin }) =>
      cron({ registry: { url: `${origin.replace('http', 'docker')}/disk:1`, secretRef: 'SECRET' } }),
  },
  'Secret of a cron of a store': {
    fields: ['s3.url', 's3.secretRef'].flatMap((field) => [
      `DataImportCron spec.template.spec.source.${field}`,
      `DataImportCron spec.source.${field}`,
    ]),
    object: ({ store, bucket }) => cron({ s3: { url: `${store}/${bucket}/ok`, secretRef: 'SECRET' } }),
  },
  'Secret and URL of an export to a registry': {
    fields: [
      'VirtualMachineVolumeExport spec.destination.registry.url',
      'VirtualMachineVolumeExport spec.destination.registry.secretRef',
      'VirtualMachineVolumeExport spec.destination.registry.signingSecretRef',
    ],
    object: ({ origin }) => ({
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineVolumeExport',
      metadata: {},
      spec: {
        pvcName: 'way-1',
        destination: {
          registry: {
            url: `${origin.replace('http', 'docker')}/disk:1`,
            secretRef: 'SECRET',
            signingSecretRef: 'SECRET',
          },
        },
      },
    }),
  },
  'Secret and URL of an export': {
    fields: [
      'VirtualMachineVolumeExport spec.destination.s3.url',
      'VirtualMachineVolumeExport spec.destination.s3.secretRef',
    ],
    object: ({ store, bucket }) => ({
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineVolumeExport',
      metadata: {},
      spec: { pvcName: 'way-1', destination: { s3: { url: `${store}/${bucket}/exported`, secretRef: 'SECRET' } } },
    }),
  },
};

/** Fields that may contain a credential or name a Secret, but have no way, and why. */
export const noWays: readonly { readonly of: RegExp; readonly because: string }[] = [
  { of: /\.(imageio|vddk)\./, because: 'refused at admission' },
  { of: /\.checks\[\]\./, because: 'the kubelet gives it to a Job of the user: Bullion passes on the name' },
  { of: /\.signature\.(gpg|minisign)\./, because: 'checksum files and their signatures are public' },
];

/** Every text can contain a credential that the list does not clear, and every name of a Secret leads to one. */
export const mayGive = (text: Text): boolean => {
  if (isObjectName(text)) return /secret/i.test(text.path);
  return !['plain', 'place'].includes(meaningOf(text) ?? '');
};
