// Answers admission reviews of every served kind from the rule tables. Called by `functions/{validate,mutate}`.
import { isDeepStrictEqual } from 'node:util';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  type AskedSource,
  type SourcesOf,
  fillGrants,
  reviewAccess,
  reviewUses,
} from '#shared/resources/access-rule.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { reviewClaim } from '#shared/resources/data-volume/defaults.ts';
import { reviewProtected, unmarked } from '#shared/resources/protected/rules.ts';
import { reviewLimits } from '#shared/resources/tenant-limit/review.ts';
import { withClassLabel } from '#shared/resources/protected/storage-class.ts';
import { imagesOfClasses } from './image-rules.ts';
import type { DefaultRequest, RequestRule, RuleReason, RuleRequest } from '#shared/resources/rule.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';
import { type AddressPolicy, createAddressPolicy } from '#shared/clients/http/address.ts';
import { addressRules } from '#shared/resources/address-rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import { type AdmittedKind, admittedKinds } from '#shared/resources/admitted-kinds.ts';

type Review = (request: AdmissionRequest) => Promise<AdmissionAnswer>;

const noSources: SourcesOf<KubeObject> = () => [];

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

/** What its author may not do; `undefined`: nothing. */
const reviewRights = async (
  kind: AdmittedKind,
  request: AdmissionRequest,
  { object, kube, cdi }: { readonly object: KubeObject; readonly kube: KubeClient; readonly cdi: CdiLook | undefined },
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
    const held = (await reviewProtected(request, kube)) ?? allowed;
    if (held.kind === 'refused' || request.operation === 'DELETE') return held;
    const kind = await findKind(kinds, request, cdi);
    const object = withName(request.object);
    if (kind === undefined || object === undefined || !isAskedAbout(request)) return held;
    const shapeFaults = readShape(kind, object);
    if (shapeFaults.length > 0) return refused('Invalid', shapeFaults);
    // Before any look-up whose result the answer might reveal.
    const forbidden = await reviewRights(kind, request, { object, kube, cdi });
    if (forbidden !== undefined) return forbidden;
    const limited = await reviewLimits(request, object, kube);
    if (limited !== undefined) return limited;
    const answer = await judge(
      [...kind.rules, ...addressRules(isRefused)],
      toRuleRequest(kind, object, { request, kube }),
      request.operation,
    );
    return answer.kind === 'refused' ? answer : held;
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
