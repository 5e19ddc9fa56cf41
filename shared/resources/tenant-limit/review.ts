// What limits of the namespace say of a request, at the door. Objects that Bullion itself makes are not refused: they wait, and say why (gate.ts).
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { TenantLimit } from '#shared/api/bullion/tenant-limit.ts';
import { annotations, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readClass } from '#shared/populate/reading.ts';
import { type AdmissionAnswer, refused } from '#shared/runtime/admission-function.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import { type CountedItem, classRefusals, quotaRefusals } from './amounts.ts';
import { limitsOn, listLimits, readItems } from './applied.ts';
import { sourceRefusals, uploadRefusal } from './places.ts';
import { unpinnedRefusals } from './signed.ts';
import { type Demand, wantedBy } from './wanted.ts';

const faultsIn = (field: string, messages: readonly (string | undefined)[]): readonly Fault[] =>
  messages.flatMap((message) => (message === undefined ? [] : [{ field, message }]));

const sourceFaults = (limits: readonly TenantLimit[], now: Demand, before: Demand | undefined): readonly Fault[] => {
  const known = new Set(before?.sources.map(({ url }) => url.href));
  const added = now.sources.filter(({ url }) => !known.has(url.href));
  return faultsIn('spec', [
    ...sourceRefusals(limits, added),
    ...(before === undefined ? unpinnedRefusals(limits, now.signable) : []),
    now.isUpload && before?.isUpload !== true ? uploadRefusal(limits) : undefined,
  ]);
};

/** What the request would take: the class is that of the cluster if it names none and something depends on it. */
const withClass = async (kube: KubeClient, limits: readonly TenantLimit[], wanted: Demand): Promise<Demand> => {
  const isAsked = limits.some(({ spec }) => spec.storageClasses ?? spec.quota?.storageClasses);
  if (!isAsked || (wanted.className ?? '') !== '') return wanted;
  return { ...wanted, className: (await readClass(kube, undefined))?.metadata.name };
};

const quotaFaults = async (
  kube: KubeClient,
  limits: readonly TenantLimit[],
  { object, wanted }: { readonly object: KubeObject; readonly wanted: Demand },
): Promise<readonly Fault[]> => {
  const limited = limits.filter(({ spec }) => spec.quota !== undefined);
  const { counts, className, bytes = 0 } = wanted;
  if (limited.length === 0 || counts === undefined) return [];
  const { uid = '', namespace = '', annotations: { [annotations.undelete]: taken } = {} } = object.metadata;
  const isOther = (item: CountedItem): boolean => item.uid !== uid && (taken === undefined || item.left !== taken);
  const others = (await readItems(kube, namespace)).filter(isOther);
  const item = { uid, counts, className, bytes, isBegun: false };
  return faultsIn('spec', quotaRefusals(limited, others, item));
};

/** What is new in the request: nothing that exists is refused for what it is already. */
const faultsOfRequest = async (
  kube: KubeClient,
  limits: readonly TenantLimit[],
  {
    object,
    asked,
    before,
  }: { readonly object: KubeObject; readonly asked: Demand; readonly before: Demand | undefined },
): Promise<readonly Fault[]> => {
  const wanted = await withClass(kube, limits, asked);
  const isOtherClass = before === undefined || before.className !== asked.className;
  const hasGrown = before === undefined || (asked.bytes ?? 0) > (before.bytes ?? 0);
  return [
    ...sourceFaults(limits, wanted, before),
    ...(isOtherClass ? faultsIn('spec', classRefusals(limits, wanted.className)) : []),
    ...(hasGrown ? await quotaFaults(kube, limits, { object, wanted }) : []),
  ];
};

/** `undefined`: nothing to object to. */
export const reviewLimits = async (
  { operation, userInfo, oldObject }: AdmissionRequest,
  object: KubeObject,
  kube: KubeClient,
): Promise<AdmissionAnswer | undefined> => {
  const { namespace } = object.metadata;
  const asked = userInfo.username.startsWith(ownAccountPrefix) ? undefined : wantedBy(object);
  if (namespace === undefined || asked === undefined) return undefined;
  const limits = await limitsOn(kube, namespace, await listLimits(kube));
  if (limits.length === 0) return undefined;
  const before = operation === 'UPDATE' && oldObject !== undefined ? wantedBy(oldObject) : undefined;
  const faults = await faultsOfRequest(kube, limits, { object, asked, before });
  return faults.length === 0 ? undefined : refused('Forbidden', faults);
};
