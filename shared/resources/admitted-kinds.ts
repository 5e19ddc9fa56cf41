// What admission asks of each served kind: one row with its rules, its defaults, and what its author must be allowed to use. Called by admission.ts.
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KindName } from '#shared/api/kinds.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataSourceRules, reviewOffer } from '#shared/resources/data-source/rules.ts';
import { readDataSource, sourcesLookedAt } from '#shared/resources/data-source/resource.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { type BackendRegistry } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AskedSource, type SourcesOf } from '#shared/resources/access-rule.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import { dataImportCronRules } from '#shared/resources/data-import-cron/rules.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { dataVolumeDefaults } from '#shared/resources/data-volume/defaults.ts';
import { dataVolumeSources } from '#shared/resources/data-volume/source.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { dataVolumeRequestRules } from '#shared/resources/data-volume/rules.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { readPolicy } from '#shared/resources/golden-image-policy/policy.ts';
import { reviewChannelSource, reviewPolicy, signPolicy } from '#shared/resources/golden-image-policy/rights.ts';
import { goldenImagePolicyRules } from '#shared/resources/golden-image-policy/rules.ts';
import { harvesterImageDefaults } from '#shared/resources/harvester-image/defaults.ts';
import { harvesterImageRequestRules } from '#shared/resources/harvester-image/rules.ts';
import { harvesterImageSources } from '#shared/resources/harvester-image/source.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { virtualMachinePvcs, virtualMachineVolumes } from '#shared/resources/hypercloud-volume/dialect.ts';
import { hyperCloudVolumeRules } from '#shared/resources/hypercloud-volume/rules.ts';
import { tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { readLimit } from '#shared/resources/tenant-limit/index.ts';
import { limitRules } from '#shared/resources/tenant-limit/rules.ts';
import { imageRules } from '#shared/resources/image-rules.ts';
import type { DefaultRule, RequestRule } from '#shared/resources/rule.ts';
import { toExport } from '#shared/resources/volume-export/dialect.ts';
import { volumeExportRequestRules } from '#shared/resources/volume-export/rules.ts';
import type { VolumeDialect } from '#shared/resources/volume-reconciler.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import type { AdmissionAnswer } from '#shared/runtime/admission-function.ts';
import type { Image } from '#shared/backends/backend.ts';

/** Admission rules of a kind. */
export interface AdmittedKind<T extends KubeObject = KubeObject, S = unknown> {
  readonly kind: ServedKind<T>;
  /** The requested state, as read by the rules. */
  read(this: void, object: T): S;
  readonly rules: readonly RequestRule<T, S>[];
  readonly defaults: readonly DefaultRule<T>[];
  /** Sources that its author must be allowed to use. Default: none outside of its own namespace. */
  sources?(this: void, ...asked: Parameters<SourcesOf<T>>): ReturnType<SourcesOf<T>>;
  /** Objects that its author must be allowed to use whenever they are named, including later updates. Default: only the images of classes. */
  uses?(this: void, object: T): readonly AskedSource[];
  /** Records the requester in the decisions they wrote. `before`: the previous object, if valid. */
  sign?(request: AdmissionRequest, object: T, before: T | undefined): T;
  /** Checks permissions beyond that to write the object; `undefined`: allowed. */
  review?(
    request: AdmissionRequest,
    object: T,
    around: { readonly kube: KubeClient; readonly cdi: CdiLook | undefined },
  ): Promise<AdmissionAnswer | undefined>;
  /** Images: their storage class. */
  classOf?(object: T): string | undefined;
}

/** Checked as rules of their kind; admission passes each row objects of its kind alone. */
const admit = <T extends KubeObject, S>(kind: AdmittedKind<T, S>): AdmittedKind => kind;

const admitImage = <T extends ImageObject>(
  dialect: ImageDialect<T>,
  rest: Omit<AdmittedKind<T, Image>, 'kind' | 'read' | 'classOf'>,
): AdmittedKind =>
  admit<T, Image>({
    kind: dialect.kind,
    read: (object) => dialect.toImage(object),
    classOf: (object) => dialect.toImage(object).storage.className,
    ...rest,
  });

const admitVolume = <T extends KubeObject>(
  dialect: VolumeDialect<T>,
  rules: readonly RequestRule<KubeObject, Volume>[],
  rest: Partial<Pick<AdmittedKind<T>, 'sources' | 'defaults'>> = {},
): AdmittedKind =>
  admit<T, Volume>({
    kind: dialect.kind,
    read: (object) => dialect.toVolume(object),
    rules: rules as readonly RequestRule<T, Volume>[],
    defaults: [],
    ...rest,
  });

/** Rule tables of each kind; `undefined`: validated only by its schema. */
const rowsOf = (registry: BackendRegistry): Readonly<Record<KindName, AdmittedKind | undefined>> => ({
  hyperCloudImage: admitImage(hyperCloudImages, {
    rules: imageRules(registry, { backend: 'spec', source: 'spec.source' }),
    defaults: [],
  }),
  harvesterImage: admitImage(harvesterImages, {
    rules: [
      ...imageRules(registry, { backend: 'spec.backend', source: 'spec.sourceType' }),
      ...harvesterImageRequestRules,
    ],
    defaults: harvesterImageDefaults(registry),
    sources: harvesterImageSources,
  }),
  virtualMachinePvc: admitVolume(virtualMachinePvcs, hyperCloudVolumeRules('pvc')),
  virtualMachineVolume: admitVolume(virtualMachineVolumes, hyperCloudVolumeRules('volume')),
  volumeExport: admit({ kind: volumeExportKind, read: toExport, rules: volumeExportRequestRules, defaults: [] }),
  dataImportCron: admit({ kind: dataImportCronKind, read: readCron, rules: dataImportCronRules, defaults: [] }),
  dataVolume: admitVolume(dataVolumes, dataVolumeRequestRules, {
    sources: dataVolumeSources,
    defaults: dataVolumeDefaults,
  }),
  dataSource: admit({
    kind: dataSourceKind,
    read: readDataSource,
    rules: dataSourceRules,
    defaults: [],
    uses: sourcesLookedAt,
    review: async (request, object, around) =>
      (await reviewOffer(request, object, around)) ?? reviewChannelSource(request, object, around),
  }),
  goldenImagePolicy: admit({
    kind: goldenImagePolicyKind,
    read: readPolicy,
    rules: goldenImagePolicyRules,
    defaults: [],
    sign: signPolicy,
    review: reviewPolicy,
  }),
  tenantLimit: admit({ kind: tenantLimitKind, read: readLimit, rules: limitRules, defaults: [] }),
  downloader: undefined,
  storageProfile: undefined,
});

/** Of each kind that has rules. */
export const admittedKinds = (registry: BackendRegistry): readonly AdmittedKind[] =>
  Object.values(rowsOf(registry)).filter((row) => row !== undefined);
