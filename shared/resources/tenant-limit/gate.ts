// Holds back what limits do not allow, where it got past admission or the limit came later: nothing is made for the object until there is room. Two
// objects that were created at once are decided one after the other: a Lease for each namespace records what was let through, and a change of it
// by another pass makes this one look again.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { TenantLimit } from '#shared/api/bullion/tenant-limit.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { VerifySignature } from '#shared/golden/signature/outcome.ts';
import type { ServerReach } from '#shared/clients/http/reach.ts';
import { retryConflicts } from '#shared/clients/kube/tolerant.ts';
import { readLedger, writeLedger } from '#shared/populate/queue/ledger.ts';
import type { Action } from '#shared/populate/actions.ts';
import { requestedBytes } from '#shared/populate/population.ts';
import type { Refusal } from '#shared/resources/reconciler.ts';
import { type CountedItem, classRefusals, quotaRefusals } from './amounts.ts';
import { type LimitsLook, readItems } from './applied.ts';
import { reachOf, sourceRefusals, uploadRefusal } from './places.ts';
import { signatureRefusals } from './signed.ts';
import { type Demand, limitReasons, wantedBy } from './wanted.ts';

const Ledger = z.record(z.string(), z.object({ bytes: z.number(), className: z.string().optional() }));

const maxRounds = 5;

const keyOf = (namespace: string) => ({
  namespace: systemNamespace,
  name: `tenant-limits-${createHash('sha256').update(namespace).digest('hex').slice(0, 40)}`,
});

const takeRoom = async (
  kube: KubeClient,
  { limits, namespace, item }: { limits: readonly TenantLimit[]; namespace: string; item: CountedItem },
): Promise<readonly string[]> => {
  // Before the objects: what another pass records from here on is a conflict.
  const key = keyOf(namespace);
  const lease = await kube.get(leases, key);
  const ledger = readLedger(Ledger, lease);
  // Let through before.
  if ((ledger[item.uid]?.bytes ?? -1) >= item.bytes) return [];
  const items = await readItems(kube, namespace);
  const others = items.flatMap((one): readonly CountedItem[] => {
    const taken = ledger[one.uid];
    if (one.uid === item.uid || (!one.isBegun && taken === undefined)) return [];
    return [{ ...one, bytes: Math.max(one.bytes, taken?.bytes ?? 0), className: one.className ?? taken?.className }];
  });
  const refusals = quotaRefusals(limits, others, item);
  if (refusals.length > 0) return refusals;
  // Once its claim is there, that says how much it takes.
  const pending = Object.entries(ledger).filter(([uid, { bytes }]) =>
    items.some((one) => one.uid === uid && (!one.isBegun || one.bytes < bytes)),
  );
  const { uid, bytes, className } = item;
  const mine = { bytes, ...(className === undefined ? {} : { className }) };
  await writeLedger(kube, { key, lease, ledger: { ...Object.fromEntries(pending), [uid]: mine } });
  return [];
};

/** Empty: it may begin, and is recorded. */
const roomFor = (kube: KubeClient, asked: Parameters<typeof takeRoom>[1]): Promise<readonly string[]> =>
  retryConflicts(maxRounds, () => takeRoom(kube, asked));

const toRefusal = (reason: string, messages: readonly string[]): Refusal | undefined =>
  messages.length === 0 ? undefined : { reason, message: messages.join('; ') };

/** What limits say of one object in a pass. */
export interface Gate {
  /** Why nothing may be made for it; `undefined`: something may, as far as is known before it is planned. */
  readonly refusal: Refusal | undefined;
  /** Servers that may be asked for it. */
  readonly reach: ServerReach | undefined;
  /** Why the actions may not be carried out: the size and the class of a claim are known only with its plan. */
  readonly refusalOf: (actions: readonly Action[]) => Promise<Refusal | undefined>;
}

const openGate: Gate = { refusal: undefined, reach: undefined, refusalOf: () => Promise.resolve(undefined) };

interface Gated {
  readonly kube: KubeClient;
  readonly limits: readonly TenantLimit[];
  readonly object: KubeObject;
  readonly wanted: Demand;
  readonly verify: VerifySignature | undefined;
}

const quotaRefusal = async (
  { kube, limits, object, wanted }: Gated,
  over: Partial<Pick<CountedItem, 'bytes' | 'className'>> = {},
): Promise<Refusal | undefined> => {
  const { counts, className, bytes = 0 } = wanted;
  const limited = limits.filter(({ spec }) => spec.quota !== undefined);
  if (counts === undefined || limited.length === 0) return undefined;
  const { uid = '', namespace = '' } = object.metadata;
  const item = { uid, counts, className, bytes, isBegun: false, ...over };
  return toRefusal(limitReasons.quota, await roomFor(kube, { limits: limited, namespace, item }));
};

/** An index may be signed in place of the version, which is one of the images that it lists. */
const sourceDigestOf = async ({ kube, object, wanted }: Gated): Promise<string | undefined> => {
  const { namespace, labels: { [cdiLabels.cron]: name } = {} } = object.metadata;
  const found = name === undefined ? undefined : await kube.get(dataImportCronKind.type, { namespace, name });
  const cron = found && readCron(found);
  return cron !== undefined && cron.digest === wanted.signable?.digest ? cron.state.lastPoll?.sourceDigest : undefined;
};

const signaturesIn = (gated: Gated): Promise<readonly string[]> =>
  signatureRefusals({
    ...gated,
    namespace: gated.object.metadata.namespace ?? '',
    signable: gated.wanted.signable,
    sourceDigest: () => sourceDigestOf(gated),
  });

const beginning = async (gated: Gated): Promise<Refusal | undefined> => {
  const { limits, wanted } = gated;
  const { sources, isUpload, className } = wanted;
  const upload = isUpload ? uploadRefusal(limits) : undefined;
  return (
    toRefusal(limitReasons.source, [...sourceRefusals(limits, sources), ...(upload === undefined ? [] : [upload])]) ??
    toRefusal(limitReasons.storageClass, classRefusals(limits, className)) ??
    toRefusal(limitReasons.signature, await signaturesIn(gated)) ??
    (await quotaRefusal(gated))
  );
};

const newClaim = (actions: readonly Action[], namespace: string | undefined): PersistentVolumeClaim | undefined => {
  const found = actions.find(
    (action) =>
      action.do === 'create' &&
      action.type.plural === persistentVolumeClaims.plural &&
      action.object.metadata.namespace === namespace,
  );
  return found?.do === 'create' ? (found.object as PersistentVolumeClaim) : undefined;
};

const refusalOfClaim = async (gated: Gated, actions: readonly Action[]): Promise<Refusal | undefined> => {
  const { limits, object, wanted } = gated;
  const claim = newClaim(actions, object.metadata.namespace);
  if (claim === undefined) return undefined;
  const className = claim.spec.storageClassName ?? wanted.className;
  const bytes = Math.max(requestedBytes(claim), wanted.bytes ?? 0);
  return (
    toRefusal(limitReasons.storageClass, classRefusals(limits, className)) ??
    (await quotaRefusal(gated, { className, bytes }))
  );
};

interface Around {
  readonly kube: KubeClient;
  readonly limits?: LimitsLook | undefined;
  readonly verify?: VerifySignature | undefined;
}

/** What was begun continues, whatever the limits are since; only servers are compared as long as bytes are fetched. */
export const gateOf = async ({ kube, limits: look, verify }: Around, object: KubeObject): Promise<Gate> => {
  const { namespace } = object.metadata;
  const wanted = look === undefined || namespace === undefined ? undefined : wantedBy(object);
  if (look === undefined || namespace === undefined || wanted === undefined) return openGate;
  const limits = await look(namespace, !wanted.hasClaim);
  if (limits.length === 0) return openGate;
  const gated = { kube, limits, object, wanted, verify };
  return {
    refusal: wanted.isBegun ? undefined : await beginning(gated),
    reach: reachOf(limits, wanted.sources),
    refusalOf: (actions) => (wanted.hasClaim ? Promise.resolve(undefined) : refusalOfClaim(gated, actions)),
  };
};
