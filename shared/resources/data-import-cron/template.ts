// The data volume that imports one version. Pure.
import { toGrantText } from '#shared/access/permissions.ts';
import { cdiAnnotations, cdiLabels, cronLabels } from '#shared/api/cdi/names.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata, type ObjectMeta } from '#shared/api/object.ts';
import { pinReference } from '#shared/clients/registry/reference.ts';
import { isValidator } from '#shared/golden/version.ts';
import { rightOf } from '#shared/populate/sources/servers.ts';
import { readSource } from '#shared/resources/data-volume/source.ts';
import { withoutOwnMarks } from '#shared/resources/protected/marks.ts';
import type { CronResource, ObservedCron } from '#shared/resources/data-import-cron/cron.ts';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

const templateOf = ({ object }: CronResource): Fields => fieldsOf(object.spec.template?.spec);

export const classNameOf = (cron: CronResource): string | undefined => {
  const { storage, pvc } = templateOf(cron);
  const name = fieldsOf(storage)['storageClassName'] ?? fieldsOf(pvc)['storageClassName'];
  return typeof name === 'string' && name !== '' ? name : undefined;
};

/** Whether the default class for disks of virtual machines is meant where none is named: as data volumes have it, `pvc` means that of the cluster. */
export const isForDisk = (cron: CronResource): boolean => {
  const { pvc, contentType } = templateOf(cron);
  return pvc === undefined && contentType !== 'archive';
};

/** The size the template asks for. */
export const sizeOf = (cron: CronResource): string | undefined => {
  const { storage, pvc } = templateOf(cron);
  const { resources } = pvc === undefined ? fieldsOf(storage) : fieldsOf(pvc);
  const size = fieldsOf(fieldsOf(resources)['requests'])['storage'];
  return typeof size === 'string' || typeof size === 'number' ? String(size) : undefined;
};

/** Found by label, and kept by its cron alone: it may outlive it, so there is no owner reference. */
export const managedMetadata = (cron: CronResource, role: string, name: string): ObjectMeta => {
  const { ownerReferences: _, ...metadata } = childMetadata(cron.ref, role, name);
  return {
    ...metadata,
    labels: {
      ...cronLabels(cron.object.metadata.labels),
      ...metadata.labels,
      [cdiLabels.cron]: cron.ref.name,
      ...(cron.retains ? {} : { [cdiLabels.cleanup]: 'true' }),
    },
  };
};

const sourceOf = (cron: CronResource, copied: string | undefined): Fields => {
  if (copied !== undefined) return { pvc: { namespace: cron.namespace, name: copied } };
  const { source, object, digest } = cron;
  const written = fieldsOf(object.spec.source ?? object.spec.template?.spec.source);
  switch (source?.type) {
    case 'registry': {
      const { tags: _, ...registry } = fieldsOf(written['registry']);
      return { registry: { ...registry, url: pinReference(source.image, digest) } };
    }
    case 'http': {
      const { checksumURL: _, ...http } = fieldsOf(written['http']);
      return { http: { ...http, ...(isValidator(digest) ? {} : { checksum: digest }) } };
    }
    case 's3':
      return { s3: written['s3'] };
    case 'pvc':
      return { pvc: { namespace: source.namespace ?? cron.namespace, name: source.name } };
    case undefined:
      return {};
  }
};

const storageOf = (cron: CronResource, profile: StorageProfile | undefined): Fields => {
  const { storage, pvc } = templateOf(cron);
  if (pvc !== undefined) return { pvc };
  const isSingleWriter = profile?.metadata.annotations?.[cdiAnnotations.singleWriter] === 'true';
  const written = fieldsOf(storage);
  const isOpen = !Array.isArray(written['accessModes']) || written['accessModes'].length === 0;
  return { storage: isSingleWriter && isOpen ? { ...written, accessModes: ['ReadWriteOnce'] } : written };
};

type Importing = Pick<ObservedCron, 'profile' | 'right'> & {
  /** The version to copy, in place of what the source has. */
  readonly copied?: { readonly name: string; readonly digest: string } | undefined;
};

/** What was asked for its service account; our own account writes it, and nobody else may. */
const grantOf = ({ right }: Pick<ObservedCron, 'right'>): Readonly<Record<string, string>> => {
  const text = right.is === 'asked' && right.grant !== undefined ? toGrantText([right.grant]) : undefined;
  return text === undefined ? {} : { [annotations.granted]: text };
};

/** With the right to it: the source of the data volume may be a copy, which needs none. */
export const sharedContent = (cron: CronResource, digest: string): string => {
  const { success, data } = dataVolumeKind.spec.safeParse({ source: sourceOf(cron, undefined) });
  const source = success ? readSource(data, cron.namespace) : undefined;
  return `${digest}${source?.type === 'transfer' ? rightOf(source.from) : ''}`;
};

/** What others share a download by, where the source does not say it. */
const contentOf = (cron: CronResource, copied: { readonly digest: string } | undefined): Fields => {
  const content = copied?.digest ?? (isValidator(cron.digest) ? cron.digest : undefined);
  return content === undefined ? {} : { [annotations.content]: sharedContent(cron, content) };
};

export const buildImport = (cron: CronResource, name: string, observed: Importing): DataVolume => {
  const { copied } = observed;
  const template = cron.object.spec.template;
  const metadata = managedMetadata(cron, 'version', name);
  const retainPod = cron.object.metadata.annotations?.[cdiAnnotations.retainPod];
  return {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: {
      ...metadata,
      labels: { ...withoutOwnMarks(template?.metadata?.labels), ...metadata.labels },
      annotations: {
        ...withoutOwnMarks(template?.metadata?.annotations),
        ...metadata.annotations,
        // Nobody consumes a golden volume: it must not wait for somebody who does.
        [cdiAnnotations.immediateBinding]: 'true',
        ...grantOf(observed),
        ...contentOf(cron, copied),
        ...(retainPod === undefined ? {} : { [cdiAnnotations.retainPod]: retainPod }),
      },
    },
    spec: { ...templateOf(cron), source: sourceOf(cron, copied?.name), ...storageOf(cron, observed.profile) },
  };
};
