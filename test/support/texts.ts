// Every text in the specs of the served kinds. It is the name of an object, which its schema says (`ObjectName`), or it is in the list below. Compared
// with the schemas by shared/api/references.test.ts, and read by the tests of references, of addresses, of tenants and of credentials.
import { NamespaceName, ObjectName, type ServedKind } from '#shared/api/kind.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type StructuralSchema, toStructuralSchema } from '#shared/api/structural-schema.ts';

export interface Text {
  readonly kind: ServedKind;
  /** From `spec`; `[]` for each item of a list, `{}` for each value of a map. */
  readonly path: string;
  readonly schema: StructuralSchema;
}

const textsOf = (schema: StructuralSchema, path: string): readonly Omit<Text, 'kind'>[] => {
  const { type, properties = {}, items, additionalProperties } = schema;
  return [
    ...(type === 'string' && schema.enum === undefined ? [{ path, schema }] : []),
    ...Object.entries(properties).flatMap(([key, one]) => textsOf(one, `${path}.${key}`)),
    ...(items === undefined ? [] : textsOf(items, `${path}[]`)),
    ...(additionalProperties === undefined ? [] : textsOf(additionalProperties, `${path}{}`)),
  ];
};

export const texts: readonly Text[] = servedKinds.flatMap((kind) =>
  textsOf(toStructuralSchema(kind.spec), 'spec').map((text) => ({ kind, ...text })),
);

/** `Kind path`. */
export const fieldOf = ({ kind, path }: Pick<Text, 'kind' | 'path'>): string => `${kind.type.kind} ${path}`;

const patterns = [ObjectName, NamespaceName].map((name) => toStructuralSchema(name).pattern);
/** Its schema accepts only names of objects. */
export const isObjectName = ({ schema }: Text): boolean => patterns.includes(schema.pattern);

/** What a text is that is not the name of another object. */
type Meaning =
  /** Leads nowhere, and contains no credential. */
  | 'plain'
  /** May contain a credential. */
  | 'header'
  /** May be a URL that Bullion connects to: admission judges its address, and its query may be a credential. */
  | 'url'
  /** Leads to something without being a URL or the name of an object: an object of a store, labels. */
  | 'place'
  /** The name of another part of the same object. */
  | 'own';

const meanings: Readonly<Record<string, Meaning>> = {
  'VirtualMachineImage spec.source.http': 'url',
  'VirtualMachineImage spec.source.objectStore.bucketName': 'place',
  'VirtualMachineImage spec.source.objectStore.objectName': 'place',
  'VirtualMachineImage spec.source.hostPath.path': 'plain',
  'VirtualMachineImage spec.source.workloadIdentity': 'plain',
  'VirtualMachineVolumeExport spec.destination.s3.workloadIdentity': 'plain',
  'VirtualMachineImage spec.checksum': 'plain',
  'VirtualMachineImage spec.description': 'plain',
  'VirtualMachineImage spec.displayName': 'plain',
  'VirtualMachineImage spec.url': 'url',
  'VirtualMachineImage spec.storageClassParameters{}': 'place',
  'DataImportCron spec.template.metadata.labels{}': 'place',
  'DataImportCron spec.template.metadata.annotations{}': 'place',
  'DataImportCron spec.template.spec.source.registry.url': 'url',
  'DataImportCron spec.template.spec.source.registry.tags': 'plain',
  'DataImportCron spec.template.spec.source.registry.pullMethod': 'plain',
  'DataImportCron spec.template.spec.source.registry.imageStream': 'place',
  'DataImportCron spec.template.spec.source.registry.platform.architecture': 'plain',
  'DataImportCron spec.template.spec.source.http.url': 'url',
  'DataImportCron spec.template.spec.source.http.checksumURL': 'url',
  'DataImportCron spec.template.spec.source.s3.url': 'url',
  'DataImportCron spec.source.registry.url': 'url',
  'DataImportCron spec.source.registry.tags': 'plain',
  'DataImportCron spec.source.registry.pullMethod': 'plain',
  'DataImportCron spec.source.registry.imageStream': 'place',
  'DataImportCron spec.source.registry.platform.architecture': 'plain',
  'DataImportCron spec.source.http.url': 'url',
  'DataImportCron spec.source.http.checksumURL': 'url',
  'DataImportCron spec.source.s3.url': 'url',
  'DataImportCron spec.schedule': 'plain',
  'DataImportCron spec.retentionPolicy': 'plain',
  'DataImportCron spec.createdBy': 'plain',
  'GoldenImagePolicy spec.dataImportCrons.matchLabels{}': 'place',
  'GoldenImagePolicy spec.channels[].after.channel': 'own',
  'GoldenImagePolicy spec.channels[].after.soak': 'plain',
  'GoldenImagePolicy spec.verify.signature.cosign.keys.inline[]': 'plain',
  'GoldenImagePolicy spec.verify.signature.cosign.identities[].issuer': 'plain',
  'GoldenImagePolicy spec.verify.signature.cosign.identities[].subject': 'plain',
  'GoldenImagePolicy spec.verify.signature.cosign.identities[].subjectRegExp': 'plain',
  'GoldenImagePolicy spec.verify.signature.cosign.attestations[]': 'plain',
  'GoldenImagePolicy spec.verify.signature.gpg.checksums': 'url',
  'GoldenImagePolicy spec.verify.signature.gpg.signature': 'url',
  'GoldenImagePolicy spec.verify.signature.minisign.checksums': 'url',
  'GoldenImagePolicy spec.verify.signature.minisign.signature': 'url',
  'GoldenImagePolicy spec.verify.boot.text': 'plain',
  'GoldenImagePolicy spec.verify.boot.timeout': 'plain',
  'GoldenImagePolicy spec.verify.boot.runningFor': 'plain',
  'GoldenImagePolicy spec.verify.checks[].image': 'plain',
  'GoldenImagePolicy spec.verify.checks[].command[]': 'plain',
  'GoldenImagePolicy spec.verify.checks[].args[]': 'plain',
  'GoldenImagePolicy spec.verify.checks[].env[].name': 'plain',
  'GoldenImagePolicy spec.verify.checks[].env[].value': 'plain',
  'GoldenImagePolicy spec.verify.checks[].env[].valueFrom.secretKeyRef.key': 'plain',
  'GoldenImagePolicy spec.verify.checks[].env[].valueFrom.configMapKeyRef.key': 'plain',
  'GoldenImagePolicy spec.verify.checks[].timeout': 'plain',
  'GoldenImagePolicy spec.pins{}.version': 'own',
  'GoldenImagePolicy spec.pins{}.reason': 'plain',
  'GoldenImagePolicy spec.pins{}.by': 'plain',
  'GoldenImagePolicy spec.pins{}.at': 'plain',
  'GoldenImagePolicy spec.bad[].version': 'own',
  'GoldenImagePolicy spec.bad[].digest': 'plain',
  'GoldenImagePolicy spec.bad[].reason': 'plain',
  'GoldenImagePolicy spec.bad[].by': 'plain',
  'GoldenImagePolicy spec.bad[].at': 'plain',
  'GoldenImagePolicy spec.approvals[].channel': 'own',
  'GoldenImagePolicy spec.approvals[].version': 'own',
  'GoldenImagePolicy spec.approvals[].reason': 'plain',
  'GoldenImagePolicy spec.approvals[].by': 'plain',
  'GoldenImagePolicy spec.approvals[].at': 'plain',
  'GoldenImagePolicy spec.deprecation.after': 'plain',
  'GoldenImagePolicy spec.deprecation.obsoleteAfter': 'plain',
  'GoldenImagePolicy spec.deprecated[].version': 'own',
  'GoldenImagePolicy spec.deprecated[].channel': 'own',
  'GoldenImagePolicy spec.deprecated[].reason': 'plain',
  'GoldenImagePolicy spec.deprecated[].by': 'plain',
  'GoldenImagePolicy spec.deprecated[].at': 'plain',
  'GoldenImagePolicy spec.retention.maxAge': 'plain',
  'GoldenImagePolicy spec.retention.unusedFor': 'plain',
  'GoldenImagePolicy spec.copies.unusedFor': 'plain',
  'GoldenImagePolicy spec.retention.undeleteFor': 'plain',
  'VirtualMachineVolumeExport spec.objectStore.bucketName': 'place',
  'VirtualMachineVolumeExport spec.objectStore.objectName': 'place',
  'VirtualMachineVolumeExport spec.destination.s3.url': 'url',
  'VirtualMachineVolumeExport spec.destination.registry.url': 'url',
  'DataVolume spec.source.http.url': 'url',
  'DataVolume spec.source.http.checksum': 'plain',
  'DataVolume spec.source.http.extraHeaders[]': 'header',
  'DataVolume spec.source.registry.url': 'url',
  'DataVolume spec.source.registry.imageStream': 'place',
  'DataVolume spec.source.registry.pullMethod': 'plain',
  'DataVolume spec.source.registry.platform.architecture': 'plain',
  'DataVolume spec.source.s3.url': 'url',
  'DataVolume spec.source.gcs.url': 'url',
  'DataVolume spec.source.imageio.url': 'url',
  'DataVolume spec.source.imageio.diskId': 'plain',
  'DataVolume spec.source.vddk.url': 'url',
  'DataVolume spec.source.vddk.uuid': 'plain',
  'DataVolume spec.source.vddk.backingFile': 'plain',
  'DataVolume spec.source.vddk.thumbprint': 'plain',
  'DataVolume spec.source.vddk.initImageURL': 'url',
  'DataVolume spec.source.vddk.extraArgs': 'plain',
  'DataVolume spec.sourceRef.kind': 'plain',
  'DataVolume spec.pvc.dataSource.apiGroup': 'plain',
  'DataVolume spec.pvc.dataSource.kind': 'plain',
  'DataVolume spec.pvc.dataSourceRef.apiGroup': 'plain',
  'DataVolume spec.pvc.dataSourceRef.kind': 'plain',
  'DataVolume spec.storage.dataSource.apiGroup': 'plain',
  'DataVolume spec.storage.dataSource.kind': 'plain',
  'DataVolume spec.storage.dataSourceRef.apiGroup': 'plain',
  'DataVolume spec.storage.dataSourceRef.kind': 'plain',
  'DataVolume spec.checkpoints[].previous': 'plain',
  'DataVolume spec.checkpoints[].current': 'plain',
  'TenantLimit spec.namespaceSelector.matchLabels{}': 'place',
  'TenantLimit spec.namespaceSelector.matchExpressions[].key': 'plain',
  'TenantLimit spec.namespaceSelector.matchExpressions[].values[]': 'place',
  'TenantLimit spec.storageClasses.message': 'plain',
  'TenantLimit spec.sources.allow[].host': 'plain',
  'TenantLimit spec.sources.allow[].registry': 'plain',
  'TenantLimit spec.sources.allow[].bucket': 'plain',
  'TenantLimit spec.sources.allow[].store': 'plain',
  'TenantLimit spec.sources.deny[].host': 'plain',
  'TenantLimit spec.sources.deny[].registry': 'plain',
  'TenantLimit spec.sources.deny[].bucket': 'plain',
  'TenantLimit spec.sources.deny[].store': 'plain',
  'TenantLimit spec.sources.deny[].addresses': 'plain',
  'TenantLimit spec.sources.deny[].message': 'plain',
  // Written by administrators, who may reach every address.
  'TenantLimit spec.sources.signed[].host': 'plain',
  'TenantLimit spec.sources.signed[].registry': 'plain',
  'TenantLimit spec.sources.signed[].bucket': 'plain',
  'TenantLimit spec.sources.signed[].store': 'plain',
  'TenantLimit spec.sources.signed[].signature.cosign.keys.inline[]': 'plain',
  'TenantLimit spec.sources.signed[].signature.cosign.identities[].issuer': 'plain',
  'TenantLimit spec.sources.signed[].signature.cosign.identities[].subject': 'plain',
  'TenantLimit spec.sources.signed[].signature.cosign.identities[].subjectRegExp': 'plain',
  'TenantLimit spec.sources.signed[].signature.cosign.attestations[]': 'plain',
  'TenantLimit spec.sources.signed[].signature.gpg.checksums': 'plain',
  'TenantLimit spec.sources.signed[].signature.gpg.signature': 'plain',
  'TenantLimit spec.sources.signed[].signature.minisign.checksums': 'plain',
  'TenantLimit spec.sources.signed[].signature.minisign.signature': 'plain',
  'TenantLimit spec.sources.message': 'plain',
  'TenantLimit spec.message': 'plain',
  'StorageProfile spec.cloneStrategy': 'plain',
  'StorageProfile spec.dataImportCronSourceFormat': 'plain',
};

export const listed: readonly string[] = Object.keys(meanings);
/** `undefined`: the name of an object. */
export const meaningOf = (text: Text): Meaning | undefined => meanings[fieldOf(text)];
