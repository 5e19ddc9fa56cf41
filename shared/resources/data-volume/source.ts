// Converts the source of a DataVolume to that of the engine. Called by dialect.ts, for valid and invalid specs.
import { anyName, type AskMayUse, type UsedSource } from '#shared/access/permissions.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import type { DataVolume, DataVolumeSpec } from '#shared/api/cdi/data-volume.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { offeredBy } from '#shared/access/offers.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import { type Parsed, parseSourceUrl } from '#shared/backends/rules/fields.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { noS3Object, type S3Place, s3PlaceOf } from '#shared/clients/s3/place.ts';
import { type Origin, readClaimOrigin, readSnapshotOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import { type JobSource, type Source, accessOf } from '#shared/populate/source.ts';
import type { SourceAccess } from '#shared/populate/sources/servers.ts';
import type { VolumeSource } from '#shared/populate/volume/volume.ts';
import type { AskedSource, SourcesOf } from '#shared/resources/access-rule.ts';
import { type WrittenAccess, readAccess } from '#shared/resources/source-access.ts';

export const dataSourceGroupKind = `DataSource.${cdiGroup}`;

export const sourceKinds = {
  claim: 'PersistentVolumeClaim',
  snapshot: 'VolumeSnapshot.snapshot.storage.k8s.io',
  dataSource: dataSourceGroupKind,
} as const;

/** `identity`: of its annotation, which stands beside the fields of whichever source it has. */
export const readSource = (
  { source = {}, sourceRef, serviceAccountName }: DataVolumeSpec,
  own: string,
  identity?: string,
): VolumeSource | undefined => {
  const { pvc, snapshot } = source;
  const { claim, snapshot: snapshotKind, dataSource } = sourceKinds;
  if (sourceRef !== undefined) {
    const { namespace = own, name } = sourceRef;
    return { type: 'object', groupKind: dataSource, namespace, name, mayLeadOn: true };
  }
  if (pvc !== undefined) return { type: 'object', groupKind: claim, ...pvc };
  if (snapshot !== undefined) return { type: 'object', groupKind: snapshotKind, ...snapshot };
  const from = readBytes(source);
  return from === undefined ? undefined : { type: 'transfer', from: withIdentity(from, identity, serviceAccountName) };
};

type Sources = NonNullable<DataVolumeSpec['source']>;
type Bytes = Exclude<JobSource, { type: 'claim' }>;

const withIdentity = (from: Bytes, workloadIdentity: string | undefined, account: string | undefined): Bytes => {
  const { identity } = readAccess({ workloadIdentity });
  if (identity === undefined || !accessOf(from).takes.includes('workloadIdentity')) return from;
  const access: SourceAccess = { identity, ...(account === undefined ? {} : { account }) };
  return { ...from, ...access };
};

const readBytes = ({ http, registry, blank, upload, s3, gcs }: Sources): Bytes | undefined => {
  if (http !== undefined) return { type: 'http', url: http.url, ...readAllAccess(http) };
  if (blank !== undefined) return { type: 'blank' };
  if (upload !== undefined) return { type: 'upload' };
  if (s3 !== undefined) {
    const place = toS3Place(s3.url);
    return 'value' in place ? { type: 's3', ...place.value, ...readAllAccess(s3) } : undefined;
  }
  if (gcs !== undefined) {
    const url = toGcsUrl(gcs.url);
    return 'value' in url ? { type: 'http', url: url.value, ...readAllAccess(gcs) } : undefined;
  }
  return registry?.url === undefined ? undefined : readRegistry(registry.url, registry);
};

const readRegistry = (url: string, registry: NonNullable<Sources['registry']>): Source<'registry'> => ({
  type: 'registry',
  url,
  ...(registry.platform?.architecture === undefined ? {} : { architecture: registry.platform.architecture }),
  ...readAllAccess(registry),
});

interface Access extends WrittenAccess {
  readonly extraHeaders?: readonly string[] | undefined;
  readonly secretExtraHeaders?: readonly string[] | undefined;
}

const readAllAccess = ({ extraHeaders, secretExtraHeaders, ...written }: Access): SourceAccess => ({
  ...readAccess(written),
  ...(extraHeaders === undefined ? {} : { headers: extraHeaders }),
  ...(secretExtraHeaders === undefined ? {} : { headerSecrets: secretExtraHeaders }),
});

// `source.gcs.url` of a DataVolume: a public object of Google's store, or of a compatible one, is a file on the web.

const publicEndpoint = 'https://storage.googleapis.com';

export const toGcsUrl = (text: string): Parsed<string> => {
  const match = /^gs:\/\/([a-z0-9][a-z0-9._-]+)\/(.+)$/.exec(text.trim());
  if (match !== null) {
    const key = (match[2] ?? '').split('/').map(encodeURIComponent).join('/');
    return { value: `${publicEndpoint}/${match[1] ?? ''}/${key}` };
  }
  if (text.trim().startsWith('gs:')) return { problem: 'does not refer to an object; write gs://<bucket>/<object>' };
  return parseSourceUrl(text);
};

// `source.s3.url` of a DataVolume: `http(s)://store/bucket/key`, always with the bucket in the path, as in CDI.

export const toS3Place = (text: string): Parsed<S3Place> => {
  const parsed = parseSourceUrl(text);
  if ('problem' in parsed) return parsed;
  const place = s3PlaceOf(new URL(parsed.value));
  return place === undefined ? { problem: noS3Object } : { value: place };
};

// The current target of a DataSource, as the source of a volume.

/** The one that it stands for, which may have moved since it was copied; itself, if that is gone. Who may use its target is asked all the same. */
const offeredAs = async (kube: KubeClient, source: DataSource): Promise<DataSource> => {
  const origin = offeredBy(source);
  return (origin && (await kube.get(dataSourceKind.type, origin))) ?? source;
};

export const readDataSourceOrigin = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  mayUse: AskMayUse,
): Promise<Origin> => {
  const what = `DataSource ${key.namespace}/${key.name}`;
  const named = await kube.get(dataSourceKind.type, key);
  if (named === undefined)
    return waitFor(
      'SourceNotFound',
      `${what} does not exist: create it, or name the namespace that has it in sourceRef`,
    );
  const object = await offeredAs(kube, named);
  const own = object.metadata.namespace ?? key.namespace;
  const { pvc, snapshot } = object.status?.source ?? {};
  if (pvc !== undefined) return readClaimOrigin(kube, { namespace: own, ...pvc }, { what, mayUse });
  if (snapshot !== undefined) return readSnapshotOrigin(kube, { namespace: own, ...snapshot }, { what, mayUse });
  const { message = 'it has not been reconciled yet' } = findCondition(object.status?.conditions, 'Ready') ?? {};
  return waitFor('SourceNotReady', `${what} is not ready: ${message}`);
};

// Sources of a DataVolume in other namespaces, for the permission check of its author.

const inNamespace = (
  own: string,
  { namespace = own, name }: { readonly namespace?: string | undefined; readonly name: string },
) => ({ namespace, name });

/** An existing filled claim is adopted: nothing is cloned. */
const isFilled = ({ metadata }: DataVolume): boolean =>
  metadata.annotations?.[`${cdiGroup}/storage.prePopulated`] === metadata.name;

export const dataVolumeSources: SourcesOf<DataVolume> = async (object, kube) => {
  if (isFilled(object)) return [];
  const { source = {}, sourceRef } = object.spec;
  const own = object.metadata.namespace ?? 'default';
  const written: readonly AskedSource[] = [
    ...(source.pvc === undefined ? [] : [{ use: 'clone-claim' as const, field: 'spec.source.pvc', ...source.pvc }]),
    ...(source.snapshot === undefined
      ? []
      : [{ use: 'clone-snapshot' as const, field: 'spec.source.snapshot', ...source.snapshot }]),
  ];
  const referred = sourceRef === undefined ? [] : await behind(kube, inNamespace(own, sourceRef));
  return [...written, ...referred].filter(({ namespace }) => namespace !== own);
};

/** A DataSource may change between a claim and a snapshot when the format of its images changes. */
const behind = async (kube: KubeClient, key: { readonly namespace: string; readonly name: string }) => {
  const found = await resolve(kube, key);
  const now = found ?? { use: 'clone-claim' as const, namespace: key.namespace, name: anyName };
  const later = now.use === 'clone-claim' ? ('clone-snapshot' as const) : ('clone-claim' as const);
  const asked = { field: 'spec.sourceRef', shown: `the volume behind DataSource ${key.namespace}/${key.name}` };
  return [
    { ...now, ...asked },
    { use: later, namespace: now.namespace, name: anyName, ...asked, optional: true },
  ];
};

/** The target of a DataSource; `undefined`: none yet. A reference to another DataSource is followed once, as in its own plan. */
const resolve = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
): Promise<UsedSource | undefined> => {
  const first = await sourceOf(kube, key);
  const pointer = first?.source.dataSource;
  const last = pointer === undefined ? first : await sourceOf(kube, inNamespace(key.namespace, pointer));
  const { namespace = key.namespace, source: { pvc, snapshot } = {} } = last ?? {};
  if (pvc !== undefined) return { use: 'clone-claim', ...inNamespace(namespace, pvc) };
  if (snapshot !== undefined) return { use: 'clone-snapshot', ...inNamespace(namespace, snapshot) };
  return undefined;
};

interface LookedUp {
  readonly namespace: string | undefined;
  readonly source: DataSource['spec']['source'];
}

const sourceOf = async (kube: KubeClient, key: ObjectKey): Promise<LookedUp | undefined> => {
  const named = await kube.get(dataSourceKind.type, key);
  if (named === undefined) return undefined;
  const found = await offeredAs(kube, named);
  return { namespace: found.metadata.namespace, source: found.status?.source ?? found.spec.source };
};
