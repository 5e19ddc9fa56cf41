// Creates the source of a spec: the only place that knows all types of sources.
import { objectUrl } from '#shared/clients/http/mirrors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import type { FilePlace } from '#shared/transfer/source/mirror-places.ts';
import { createMirroredSource } from '#shared/transfer/source/mirrored.ts';
import { createHostHealth } from '#shared/clients/http/health.ts';
import { createMirroredClient } from '#shared/clients/registry/mirrored.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { parseReference } from '#shared/clients/registry/reference.ts';
import { openClient, openStore, parseUrl, readBundle, readHeaders, readSecret } from './access.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { createHttpSource } from '#shared/transfer/source/http/read.ts';
import { createRegistrySource } from '#shared/transfer/source/registry/create.ts';
import { createBlankSource } from '#shared/transfer/source/handle.ts';
import { openVolume } from '#shared/transfer/source/handle.ts';
import { createBucketStore } from '#shared/clients/store/bucket.ts';
import { openCloud } from '#shared/transfer/source/cloud-access.ts';
import { createFolderStore } from '#shared/clients/store/folder.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { createChunkedSource } from '#shared/transfer/chunks/source.ts';
import { openFile } from '#shared/transfer/source/handle.ts';
import { type BackOffOptions, withBackOff } from '#shared/transfer/back-off.ts';
import { createS3Source } from '#shared/transfer/source/s3/object-http.ts';
import { toTransferError } from '#shared/transfer/source/s3/object-http.ts';
import type { ByteSource, ResumableSource } from '#shared/transfer/source/source.ts';
import type { Reception } from '#shared/transfer/upload/reception.ts';
import type { FolderSource, HttpSource, RegistrySource, S3Source, TransferSpec } from '#shared/transfer/spec.ts';

export interface SourceContext {
  readonly signal: AbortSignal;
  /** Called with each transient fault, before the delay. */
  readonly onRetry: (error: unknown, waitMs: number) => void;
  /** Delays between retries. Default: a timer. */
  readonly wait?: BackOffOptions['wait'];
  /** Reason of a wait, for the status; `undefined`: it has ended. */
  readonly onWait: (text: string | undefined) => void;
  /** Receiver of an upload. */
  readonly reception?: Reception | undefined;
}

const openHttp = async (source: HttpSource, spec: TransferSpec, context: SourceContext): Promise<ByteSource> => {
  const url = parseUrl(source.url);
  const ca = await readBundle(source.ca);
  const http = openClient(spec, ca);
  const cloud = await openCloud(source, { url, http, use: 'read' }, spec);
  const secretHeaders = await readHeaders(cloud === undefined ? source : { ...source, secretDir: undefined });
  const client = cloud ?? http;
  const open = (retries: number) => createHttpSource({ client, url, secretHeaders, ...context, retries });
  return withMirrors({ ca, url, mirrors: source.mirrors, open }, spec, context);
};

interface Mirrored {
  readonly ca: string | undefined;
  /** For people, and for the name of its host. */
  readonly url: URL;
  readonly mirrors: readonly string[] | undefined;
  /** The file itself. */
  readonly open: (retries: number) => ResumableSource;
}

/** Mirrors get no credentials. */
const withMirrors = (
  { ca, url, mirrors = [], open }: Mirrored,
  spec: TransferSpec,
  context: SourceContext,
): ByteSource => {
  const { retries } = spec.limits;
  if (mirrors.length === 0) return open(retries);
  const placeOf = (at: URL, source: ResumableSource): FilePlace => ({
    name: redactUrl(at.href),
    host: at.host,
    source,
  });
  const copies = mirrors.map(parseUrl).map((at) => {
    const client = openClient(spec, ca);
    return placeOf(at, createHttpSource({ client, url: at, secretHeaders: {}, ...context, retries: 0 }));
  });
  return createMirroredSource({
    ...context,
    places: [...copies, placeOf(url, open(0))],
    hasChecksum: spec.checksum !== undefined,
    health: createHostHealth(Date.now),
    retries,
  });
};

/** Architectures in registries, by the names of Node. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };
export const architectureOf = (arch: string): string => architectures[arch] ?? arch;

const openRegistry = async (
  source: RegistrySource,
  spec: TransferSpec,
  context: SourceContext,
): Promise<ByteSource> => {
  const image = parseReference(source.url);
  const { ca, plainHttp = false, plainHosts, architecture = architectureOf(process.arch) } = source;
  const { host, repository } = image;
  const secret = await readSecret(source, { of: 'the registry', hint: 'the type kubernetes.io/dockerconfigjson' });
  const http = openClient(spec, await readBundle(ca));
  const pace = createRegistryPace(Date.now);
  const client = createMirroredClient({
    http,
    image,
    places: source.places ?? [{ host, repository, plainHttp }],
    secret,
    plainHosts,
    pace,
    health: createHostHealth(Date.now),
    signal: context.signal,
  });
  const { servedFrom } = client;
  const close = () => http.close();
  const { retries } = spec.limits;
  return createRegistrySource({ client, image, architecture, retries, close, servedFrom, ...context });
};

const openS3 = async (source: S3Source, spec: TransferSpec, context: SourceContext): Promise<ByteSource> => {
  const { bucket, key } = source;
  const { s3, close } = await openStore(source, 'read', spec);
  const open = (retries: number) => createS3Source({ s3, object: { bucket, key }, close, ...context, retries });
  const { endpoint = `https://s3.${source.region}.amazonaws.com`, mirrors } = source;
  const ca = await readBundle(source.ca);
  const inner = withMirrors({ ca, url: objectUrl({ endpoint, bucket, key }), mirrors, open }, spec, context);
  return chunked({ inner, key, store: createBucketStore(s3, bucket, context.signal) }, spec, context);
};

const openFolder = async (
  { dir, key }: FolderSource,
  spec: TransferSpec,
  context: SourceContext,
): Promise<ByteSource> => {
  const inner = await openFile(dir, key, context.signal);
  return chunked({ inner, key, store: createFolderStore(dir) }, spec, context);
};

interface Kept {
  readonly inner: ByteSource;
  readonly key: string;
  readonly store: Store;
}

/** An object in a store may be the table of a disk in chunks. */
const chunked = (kept: Kept, { limits }: TransferSpec, { signal, onRetry, wait }: SourceContext): ByteSource =>
  createChunkedSource({
    ...kept,
    signal,
    withRetries: (work) => withBackOff({ retries: limits.retries, signal, onRetry, wait }, work, toTransferError),
  });

const openUpload = async ({ reception, ...context }: SourceContext): Promise<ByteSource> => {
  if (reception === undefined) throw new TransferError('InternalFault', 'there is no receiver for the upload');
  return reception.openSource(context);
};

/** Makes no connection. Throws TransferError, or InvalidInput for an invalid spec. */
export const openSource = (spec: TransferSpec, context: SourceContext): Promise<ByteSource> => {
  const { source } = spec;
  switch (source.type) {
    case 'http':
      return openHttp(source, spec, context);
    case 'registry':
      return openRegistry(source, spec, context);
    case 's3':
      return openS3(source, spec, context);
    case 'folder':
      return openFolder(source, spec, context);
    case 'volume':
      return openVolume(source, context.signal);
    case 'blank':
      return Promise.resolve(createBlankSource());
    case 'upload':
      return openUpload(context);
  }
};
