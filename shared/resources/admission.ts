// Answers admission reviews of every served kind from the rule tables. Called by `functions/{validate,mutate}`.
import { isDeepStrictEqual } from 'node:util';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KindName } from '#shared/api/kinds.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { readDataSource, sourcesLookedAt } from '#shared/resources/data-source/resource.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { type BackendRegistry, backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  type AskedSource,
  type SourcesOf,
  fillGrants,
  reviewAccess,
  reviewUses,
} from '#shared/resources/access-rule.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import { dataImportCronRules } from '#shared/resources/data-import-cron/rules.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumeDefaults } from '#shared/resources/data-volume/defaults.ts';
import { reviewClaim } from '#shared/resources/data-volume/render-claim.ts';
import { dataVolumeSources } from '#shared/resources/data-volume/sources.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { dataVolumeRequestRules } from '#shared/resources/data-volume/rules.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { readPolicy } from '#shared/resources/golden-image-policy/policy.ts';
import { reviewPolicy, signPolicy } from '#shared/resources/golden-image-policy/rights.ts';
import { goldenImagePolicyRules } from '#shared/resources/golden-image-policy/rules.ts';
import { harvesterImageDefaults } from '#shared/resources/harvester-image/defaults.ts';
import { harvesterImageRequestRules } from '#shared/resources/harvester-image/rules.ts';
import { harvesterImageSources } from '#shared/resources/harvester-image/source.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { virtualMachinePvcs, virtualMachineVolumes } from '#shared/resources/hypercloud-volume/dialect.ts';
import { hyperCloudVolumeRules } from '#shared/resources/hypercloud-volume/rules.ts';
import { imageRules } from '#shared/resources/image-rules.ts';
import { reviewProtected, unmarked } from '#shared/resources/protected/review.ts';
import { withClassLabel } from '#shared/resources/protected/storage-class.ts';
import { imagesOfClasses } from '#shared/resources/named-classes.ts';
import type { DefaultRequest, DefaultRule, RequestRule, RuleReason, RuleRequest } from '#shared/resources/rule.ts';
import { toExport } from '#shared/resources/volume-export/dialect.ts';
import { volumeExportRequestRules } from '#shared/resources/volume-export/rules.ts';
import type { VolumeDialect } from '#shared/resources/volume-reconciler.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';
import { type AddressPolicy, createAddressPolicy } from '#shared/clients/http/address.ts';
import { addressRule } from '#shared/resources/address-rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { Image } from '#shared/backends/image.ts';

type Review = (request: AdmissionRequest) => Promise<AdmissionAnswer>;

/** Admission rules of a kind. */
interface AdmittedKind<T extends KubeObject = KubeObject, S = unknown> {
  readonly kind: ServedKind<T>;
  /** The requested state, as read by the rules. */
  readonly read: (object: T) => S;
  readonly rules: readonly RequestRule<T, S>[];
  readonly defaults: readonly DefaultRule<T>[];
  /** Sources that its author must be allowed to use. Default: none outside of its own namespace. */
  readonly sources?: SourcesOf<T>;
  /** Objects that its author must be allowed to use whenever they are named, including later updates. Default: only the images of classes. */
  readonly uses?: (object: T) => readonly AskedSource[];
  /** Records the requester in the decisions they wrote. `before`: the previous object, if valid. */
  readonly sign?: (request: AdmissionRequest, object: T, before: T | undefined) => T;
  /** Checks permissions beyond that to write the object; `undefined`: allowed. */
  readonly review?: (
    request: AdmissionRequest,
    object: T,
    around: { readonly kube: KubeClient; readonly cdi: CdiLook | undefined },
  ) => Promise<AdmissionAnswer | undefined>;
  /** Images: their storage class. */
  readonly classOf?: (object: T) => string | undefined;
}

const noSources: SourcesOf<KubeObject> = () => [];

const admit = <T extends KubeObject, S>(kind: AdmittedKind<T, S>): AdmittedKind => kind as unknown as AdmittedKind;

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
  dataSource: admit({ kind: dataSourceKind, read: readDataSource, rules: [], defaults: [], uses: sourcesLookedAt }),
  goldenImagePolicy: admit({
    kind: goldenImagePolicyKind,
    read: readPolicy,
    rules: goldenImagePolicyRules,
    defaults: [],
    sign: signPolicy,
    review: reviewPolicy,
  }),
  downloader: undefined,
  storageProfile: undefined,
});

const admittedKinds = (registry: BackendRegistry): readonly AdmittedKind[] =>
  Object.values(rowsOf(registry)).filter((row) => row !== undefined);

/** `undefined`: not a served kind. An installed CDI validates its kinds itself. */
const findKind = async (
  kinds: readonly AdmittedKind[],
  { resource }: AdmissionRequest,
  cdi: CdiLook | undefined,
): Promise<AdmittedKind | undefined> => {
  if (resource.group === cdiGroup && (await cdi?.()) === 'use') return undefined;
  return kinds.find(({ kind }) => kind.type.group === resource.group && kind.type.plural === resource.resource);
};

export interface ValidatorOptions {
  /** Default: the kinds of CDI are served by Bullion. */
  readonly cdi?: CdiLook | undefined;
  /** CIDRs that sources may use although they are normally forbidden. */
  readonly allowedAddresses?: readonly string[] | undefined;
}

/** Objects of others that an object names now and named before. Those in its own namespace are allowed. */
const usesOf = async (
  { uses }: AdmittedKind,
  { object, before, kube }: DefaultRequest<KubeObject>,
): Promise<readonly [now: readonly AskedSource[], before: readonly AskedSource[]]> => {
  const read = async (one: KubeObject): Promise<readonly AskedSource[]> => [
    ...(uses?.(one) ?? []),
    ...(await imagesOfClasses(one, kube)).filter(({ namespace }) => namespace !== object.metadata.namespace),
  ];
  return [await read(object), before === undefined ? [] : await read(before)];
};

interface Reviewed {
  readonly object: KubeObject;
  readonly kube: KubeClient;
  readonly cdi: CdiLook | undefined;
}

/** What its author may not do; `undefined`: nothing. */
const reviewRights = async (
  kind: AdmittedKind,
  request: AdmissionRequest,
  { object, kube, cdi }: Reviewed,
): Promise<AdmissionAnswer | undefined> => {
  const forbidden =
    (await reviewAccess(request, object, kind.sources ?? noSources, kube)) ??
    (await kind.review?.(request, object, { kube, cdi }));
  if (forbidden !== undefined) return forbidden;
  return reviewUses(request, ...(await usesOf(kind, { object, before: request.oldObject, kube })), kube);
};

export const createValidator = (kube: KubeClient, { cdi, allowedAddresses = [] }: ValidatorOptions = {}): Review => {
  const kinds = admittedKinds(backends);
  let policy: AddressPolicy | undefined;
  const isRefused: AddressPolicy = (address) => (policy ??= createAddressPolicy(allowedAddresses))(address);
  return async (request) => {
    const held = await reviewProtected(request, kube);
    if (held !== undefined || request.operation === 'DELETE') return held ?? allowed;
    const kind = await findKind(kinds, request, cdi);
    const object = withName(request.object);
    if (kind === undefined || object === undefined || !isAskedAbout(request)) return allowed;
    const shapeFaults = readShape(kind, object);
    if (shapeFaults.length > 0) return refused('Invalid', shapeFaults);
    // Before any look-up whose result the answer might reveal.
    const forbidden = await reviewRights(kind, request, { object, kube, cdi });
    if (forbidden !== undefined) return forbidden;
    return judge(
      [...kind.rules, addressRule(isRefused)],
      toRuleRequest(kind, object, { request, kube }),
      request.operation,
    );
  };
};

/** An installed CDI completes claims itself. */
const completed = async (
  { operation, object, subResource }: AdmissionRequest,
  kube: KubeClient,
  cdi: CdiLook | undefined,
): Promise<AdmissionAnswer> => {
  const unchanged: AdmissionAnswer = object === undefined ? allowed : { kind: 'allowed', object };
  if (operation !== 'CREATE' || object === undefined || subResource || (await cdi?.()) === 'use') return unchanged;
  const answer = await reviewClaim(object as PersistentVolumeClaim, kube);
  return answer.kind === 'allowed' ? { object, ...answer } : answer;
};

const isClaim = ({ resource }: AdmissionRequest): boolean =>
  resource.group === persistentVolumeClaims.group && resource.resource === persistentVolumeClaims.plural;

const fillIn = async (
  kind: AdmittedKind,
  request: AdmissionRequest,
  { object, before, kube }: DefaultRequest<KubeObject>,
): Promise<KubeObject> => {
  let filled = object;
  for (const { fill } of kind.defaults) filled = await fill({ object: filled, before, kube });
  filled = kind.sign?.(request, filled, before) ?? filled;
  // Last: a default may require a permission of the author.
  return fillGrants(request, filled, kind.sources ?? noSources, kube);
};

/** Rejects no object of ours: that is up to validation. The exception is a claim to be completed, because only mutation knows why it cannot be. */
export const createMutator = (kube: KubeClient, cdi?: CdiLook): Review => {
  const kinds = admittedKinds(backends);
  return async (request) => {
    const object = await unmarked(request, kube);
    if (isClaim(request)) return completed({ ...request, object }, kube, cdi);
    const kind = await findKind(kinds, request, cdi);
    const { oldObject } = request;
    if (object === undefined || !isAskedAbout(request)) return allowed;
    if (kind === undefined || readShape(kind, object).length > 0) return { kind: 'allowed', object };
    const before = oldObject !== undefined && readShape(kind, oldObject).length === 0 ? oldObject : undefined;
    const filled = await fillIn(kind, request, { object, before, kube });
    return {
      kind: 'allowed',
      object: kind.classOf === undefined ? filled : withClassLabel(filled, kind.classOf(filled)),
    };
  };
};

/**
 * Objects being deleted only lose finalizers, and must not be blocked. Status is written by us. An update that changes neither spec, labels nor
 * annotations needs no review.
 */
const isAskedAbout = ({ operation, subResource = '', object, oldObject }: AdmissionRequest): boolean => {
  if (subResource !== '' || object?.metadata.deletionTimestamp !== undefined) return false;
  if (operation === 'CREATE') return true;
  return operation === 'UPDATE' && !isDeepStrictEqual(aspectsOf(object), aspectsOf(oldObject));
};

const aspectsOf = (object: KubeObject | undefined): unknown => {
  const { spec } = (object ?? {}) as { readonly spec?: unknown };
  return [spec, object?.metadata.annotations ?? {}, object?.metadata.labels ?? {}];
};

/** The API server generates a name from `generateName` after admission; the rules get one of the same length. */
const withName = (object: KubeObject | undefined): KubeObject | undefined => {
  if (object === undefined || (object.metadata.name ?? '') !== '') return object;
  return { ...object, metadata: { ...object.metadata, name: `${object.metadata.generateName ?? ''}xxxxx` } };
};

/** Defaults are set before an object arrives here, but a caller without a schema must get an answer as well. */
const readShape = ({ kind }: AdmittedKind, object: KubeObject): readonly Fault[] => {
  const { success, error } = kind.spec.safeParse((object as { readonly spec?: unknown }).spec);
  if (success) return [];
  return error.issues.map(({ path, message }) => ({ field: toFieldPath(['spec', ...path]), message }));
};

const toFieldPath = (path: readonly PropertyKey[]): string =>
  path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${String(step)}`))
    .join('');

const toRuleRequest = (
  kind: AdmittedKind,
  object: KubeObject,
  { request, kube }: { readonly request: AdmissionRequest; readonly kube: KubeClient },
): RuleRequest<KubeObject, unknown> => {
  const old = request.operation === 'UPDATE' ? request.oldObject : undefined;
  // An object accepted by an older schema may not be readable; then there is no old state to compare with.
  const before = old !== undefined && readShape(kind, old).length === 0 ? old : undefined;
  const resourceBefore = before === undefined ? undefined : kind.read(before);
  return { object, resource: kind.read(object), before, resourceBefore, kube };
};

interface Finding {
  readonly reason: RuleReason;
  readonly faults: readonly Fault[];
}

/** All faults at once. */
const judge = async (
  rules: readonly RequestRule<KubeObject, unknown>[],
  request: RuleRequest<KubeObject, unknown>,
  operation: AdmissionRequest['operation'],
): Promise<AdmissionAnswer> => {
  const asked = rules.filter(({ on }) => on === operation);
  const findings = await Promise.all(
    asked.map(async ({ reason, check }): Promise<Finding> => ({ reason, faults: await check(request) })),
  );
  const found = findings.filter(({ faults }) => faults.length > 0);
  const reason = (['Invalid', 'Conflict'] as const).find((one) => found.some((it) => it.reason === one));
  if (reason === undefined) return allowed;
  return refused(
    reason,
    found.flatMap(({ faults }) => faults),
  );
};
