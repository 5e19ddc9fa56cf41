// Where a DataVolume comes from, as the engine has it. Called by dialect.ts, of specs whose rules hold or not.
import type { DataVolumeSpec } from '#shared/api/cdi/data-volume.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { toGcsUrl } from '#shared/resources/data-volume/gcs-url.ts';
import { toS3Place } from '#shared/resources/data-volume/s3-url.ts';
import type { JobSource, Source } from '#shared/populate/source.ts';
import type { SourceAccess } from '#shared/populate/sources/servers.ts';
import type { VolumeSource } from '#shared/resources/volume/volume.ts';

export const dataSourceGroupKind = `DataSource.${cdiGroup}`;

export const sourceKinds = {
  claim: 'PersistentVolumeClaim',
  snapshot: 'VolumeSnapshot.snapshot.storage.k8s.io',
  dataSource: dataSourceGroupKind,
} as const;

export const readSource = ({ source = {}, sourceRef }: DataVolumeSpec, own: string): VolumeSource | undefined => {
  const { pvc, snapshot } = source;
  const { claim, snapshot: snapshotKind, dataSource } = sourceKinds;
  if (sourceRef !== undefined) {
    const { namespace = own, name } = sourceRef;
    return { type: 'object', groupKind: dataSource, namespace, name, mayLeadOn: true };
  }
  if (pvc !== undefined) return { type: 'object', groupKind: claim, ...pvc };
  if (snapshot !== undefined) return { type: 'object', groupKind: snapshotKind, ...snapshot };
  const from = readBytes(source);
  return from === undefined ? undefined : { type: 'transfer', from };
};

type Sources = NonNullable<DataVolumeSpec['source']>;

const readBytes = ({
  http,
  registry,
  blank,
  upload,
  s3,
  gcs,
}: Sources): Exclude<JobSource, { type: 'claim' }> | undefined => {
  if (http !== undefined) return { type: 'http', url: http.url, ...readAccess(http) };
  if (blank !== undefined) return { type: 'blank' };
  if (upload !== undefined) return { type: 'upload' };
  if (s3 !== undefined) {
    const place = toS3Place(s3.url);
    return 'value' in place ? { type: 's3', ...place.value, ...readAccess(s3) } : undefined;
  }
  if (gcs !== undefined) {
    const url = toGcsUrl(gcs.url);
    return 'value' in url ? { type: 'http', url: url.value } : undefined;
  }
  return registry?.url === undefined ? undefined : readRegistry(registry.url, registry);
};

const readRegistry = (url: string, registry: NonNullable<Sources['registry']>): Source<'registry'> => ({
  type: 'registry',
  url,
  ...(registry.platform?.architecture === undefined ? {} : { architecture: registry.platform.architecture }),
  ...readAccess(registry),
});

interface Access {
  readonly secretRef?: string | undefined;
  readonly certConfigMap?: string | undefined;
  readonly extraHeaders?: readonly string[] | undefined;
  readonly secretExtraHeaders?: readonly string[] | undefined;
}

/** An empty name is none, as the original has it. */
const readAccess = ({ secretRef, certConfigMap, extraHeaders, secretExtraHeaders }: Access): SourceAccess => ({
  ...(secretRef === undefined || secretRef === '' ? {} : { secretName: secretRef }),
  ...(certConfigMap === undefined || certConfigMap === '' ? {} : { bundleName: certConfigMap }),
  ...(extraHeaders === undefined ? {} : { headers: extraHeaders }),
  ...(secretExtraHeaders === undefined ? {} : { headerSecrets: secretExtraHeaders }),
});
