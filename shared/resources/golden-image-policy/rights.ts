// Who decides about versions: each part of a policy takes a right of its own, and whoever writes an entry is recorded in it. Called by admission.ts.
import { isDeepStrictEqual } from 'node:util';
import { isAllowed } from '#shared/access/permissions.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  type PolicyVerb,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { ownAccountPrefix } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { CdiLook } from '#shared/resources/cdi-mode.ts';
import { sourceOfVersion } from '#shared/resources/data-source/point.ts';
import { policiesOf } from '#shared/resources/golden-image-policy/rules.ts';
import { isoTime } from '#shared/populate/state.ts';
import { type AdmissionAnswer, refused } from '#shared/runtime/admission-function.ts';
import { type Fault, Unavailable } from '#shared/runtime/errors.ts';

/** What somebody decided, and who it was. */
interface Entry {
  readonly by?: string | undefined;
  readonly at?: string | undefined;
}

interface Placed {
  readonly field: string;
  readonly entry: Entry;
  /** The same entry of the older object, whoever wrote it. */
  readonly old: Entry | undefined;
}

/** What was decided, without who did. */
const contentOf = (entry: Entry): object => ({ ...entry, by: undefined, at: undefined });

/** The same decision among older ones; a digest may have been filled in since. */
const sameIn = <E extends Entry & { readonly digest?: string | undefined }>(
  entries: readonly E[] | undefined,
  entry: E,
): E | undefined =>
  entries?.find((old) => {
    const filled = entry.digest === undefined && old.digest !== undefined ? { ...entry, digest: old.digest } : entry;
    return isDeepStrictEqual(contentOf(old), contentOf(filled));
  });

const placed = (spec: GoldenImagePolicySpec, before: GoldenImagePolicySpec | undefined): readonly Placed[] => [
  ...Object.entries(spec.pins ?? {}).map(([name, entry]) => {
    const old = before?.pins?.[name];
    return { field: `spec.pins.${name}`, entry, old: old && sameIn([old], entry) };
  }),
  ...(['bad', 'approvals', 'deprecated'] as const).flatMap((part) =>
    (spec[part] ?? []).map((entry, index) => ({
      field: `spec.${part}[${index}]`,
      entry,
      old: sameIn<Entry>(before?.[part], entry),
    })),
  ),
];

const isOwnAccount = ({ userInfo }: AdmissionRequest): boolean => userInfo.username.startsWith(ownAccountPrefix);

const specOf = (object: AdmissionRequest['object']): GoldenImagePolicySpec | undefined =>
  (object as GoldenImagePolicy | undefined)?.spec;

const signed = <E extends Entry>(entry: E, old: E | undefined, by: string, at: string): E =>
  old === undefined ? { ...entry, by, at } : { ...entry, by: old.by, at: old.at };

type Approval = NonNullable<GoldenImagePolicySpec['approvals']>[number];

/** Approved earlier, for a channel that waits for none any more: `kubectl apply` of a manifest cannot take out what it never had. */
const isOver = ({ channels }: GoldenImagePolicySpec, before: GoldenImagePolicy | undefined, one: Approval): boolean =>
  sameIn(before?.spec.approvals, one) !== undefined &&
  !channels.some(({ name, after }) => name === one.channel && after !== undefined);

/** The policy with who decided what, and with the digests of what is marked as bad. `before`: where it can be read. */
export const signPolicy = (
  request: AdmissionRequest,
  object: GoldenImagePolicy,
  before: GoldenImagePolicy | undefined,
  now: number = Date.now(),
): GoldenImagePolicy => {
  if (isOwnAccount(request)) return object;
  const { username } = request.userInfo;
  const at = isoTime(now);
  const { pins, bad, approvals, deprecated } = object.spec;
  const digestOf = (version: string): string | undefined =>
    before?.status?.versions?.find(({ name }) => name === version)?.digest;
  const spec: GoldenImagePolicySpec = {
    ...object.spec,
    ...(pins && {
      pins: Object.fromEntries(
        Object.entries(pins).map(([name, pin]) => {
          const old = before?.spec.pins?.[name];
          return [name, signed(pin, old && sameIn([old], pin), username, at)];
        }),
      ),
    }),
    ...(bad && {
      bad: bad.map((mark) => {
        const old = sameIn(before?.spec.bad, mark);
        const digest = mark.digest ?? old?.digest ?? digestOf(mark.version);
        return { ...signed(mark, old, username, at), ...(digest === undefined ? {} : { digest }) };
      }),
    }),
    ...(approvals && {
      approvals: approvals
        .filter((one) => !isOver(object.spec, before, one))
        .map((one) => signed(one, sameIn(before?.spec.approvals, one), username, at)),
    }),
    ...(deprecated && {
      deprecated: deprecated.map((one) => signed(one, sameIn<typeof one>(before?.spec.deprecated, one), username, at)),
    }),
  };
  return { ...object, spec };
};

const { group, plural } = goldenImagePolicyKind.type;

/** What is decided of versions, in words of people. */
const wordsOf: Readonly<Record<PolicyVerb, string>> = {
  promote: 'decide how versions go through channels',
  pin: 'pin channels',
  'mark-bad': 'mark versions as bad',
  deprecate: 'deprecate versions and channels',
};

/** Each right, and the part of the spec that takes it. What is neither a pin nor a mark says how versions are promoted. */
const partsOf = (spec: GoldenImagePolicySpec | undefined): Readonly<Record<PolicyVerb, unknown>> => {
  const { pins, bad, approvals, deprecation, deprecated, ...rest } = spec ?? {};
  return {
    promote: [rest, approvals ?? []],
    pin: pins ?? {},
    'mark-bad': bad ?? [],
    deprecate: [deprecation ?? {}, deprecated ?? []],
  };
};

interface Right {
  readonly group: string;
  readonly resource: string;
}
const toCreate = ({ group, plural: resource }: Pick<ResourceType, 'group' | 'plural'>): Right => ({ group, resource });

/**
 * What is run for a policy is what its author may run here: pods can mount every Secret of their namespace. A boot mounts none, and is a machine or
 * a Job with one in it, whichever the cluster can run.
 */
const runs: readonly {
  readonly part: 'checks' | 'boot';
  readonly what: string;
  readonly oneOf: readonly Right[];
}[] = [
  { part: 'checks', what: 'Jobs', oneOf: [toCreate(jobs)] },
  { part: 'boot', what: 'virtual machines', oneOf: [toCreate(virtualMachineInstances), toCreate(jobs)] },
];

const mayRun = async (
  kube: KubeClient,
  { userInfo, oldObject }: AdmissionRequest,
  { metadata, spec }: GoldenImagePolicy,
): Promise<readonly Fault[]> => {
  const before = specOf(oldObject)?.verify;
  const faults: Fault[] = [];
  for (const { part, what, oneOf } of runs) {
    const wanted = spec.verify?.[part];
    if (wanted === undefined || isDeepStrictEqual(wanted, before?.[part])) continue;
    const { namespace } = metadata;
    const mayCreate = (right: Right): Promise<boolean> =>
      isAllowed(kube, userInfo, { verb: 'create', ...right, namespace });
    if ((await Promise.all(oneOf.map(mayCreate))).includes(true)) continue;
    const permissions = oneOf.map(({ group, resource }) => `${resource} of ${group}`).join(' or ');
    const message = `user ${userInfo.username} is not allowed to run ${what} here: this requires permission to create ${permissions}`;
    faults.push({ field: `spec.verify.${part}`, message });
  }
  return faults;
};

const fields: Readonly<Record<PolicyVerb, string>> = {
  promote: 'spec',
  pin: 'spec.pins',
  'mark-bad': 'spec.bad',
  deprecate: 'spec.deprecated',
};

const idle = refused('Invalid', [
  {
    field: 'spec.dataImportCrons',
    message:
      'a CDI is installed in this cluster and moves the DataSources of its crons itself: a policy works where Bullion serves the kinds of CDI',
  },
]);

/** `undefined`: nothing to object to. Throws Unavailable where mutation was passed by, so that it can be tried again. */
export const reviewPolicy = async (
  request: AdmissionRequest,
  object: GoldenImagePolicy,
  { kube, cdi }: { readonly kube: KubeClient; readonly cdi: CdiLook | undefined },
): Promise<AdmissionAnswer | undefined> => {
  if (isOwnAccount(request)) return undefined;
  if (request.operation === 'CREATE' && (await cdi?.()) === 'use') return idle;
  const { userInfo } = request;
  const before = specOf(request.oldObject);
  const [now, then] = [partsOf(object.spec), partsOf(before)];
  const changed = (Object.keys(now) as readonly PolicyVerb[]).filter(
    (verb) => !isDeepStrictEqual(now[verb], then[verb]),
  );
  const { namespace, name } = object.metadata;
  const faults: Fault[] = [];
  for (const verb of changed) {
    if (await isAllowed(kube, userInfo, { verb, group, resource: plural, namespace, name })) continue;
    const message = `user ${userInfo.username} is not allowed to ${wordsOf[verb]}: this requires permission to ${verb} ${plural} of ${group} here`;
    faults.push({ field: fields[verb], message });
  }
  faults.push(...(await mayRun(kube, request, object)));
  if (faults.length > 0) return refused('Forbidden', faults);
  return reviewSignatures(userInfo.username, placed(object.spec, before));
};

const reviewSignatures = (username: string, entries: readonly Placed[]): AdmissionAnswer | undefined => {
  const isForged = ({ entry, old }: Placed): boolean =>
    old === undefined ? entry.by !== username : entry.by !== old.by || entry.at !== old.at;
  const forged = entries.filter(isForged);
  if (forged.some(({ entry }) => entry.by === undefined))
    throw new Unavailable('the author of the decision was not recorded by mutate: try again');
  if (forged.length === 0) return undefined;
  const message = 'is set by admission only: leave by and at out';
  return refused(
    'Forbidden',
    forged.map(({ field }) => ({ field: `${field}.by`, message })),
  );
};

/**
 * Whoever points a channel's DataSource elsewhere decides what disks are made of until the policy puts it back. To make it again as the policy has it,
 * as GitOps and restores do, takes no right. `undefined`: nothing to object to.
 */
export const reviewChannelSource = async (
  request: AdmissionRequest,
  { metadata: { namespace, name }, spec: { source } }: DataSource,
  { kube }: { readonly kube: KubeClient },
): Promise<AdmissionAnswer | undefined> => {
  const before = (request.oldObject as DataSource | undefined)?.spec.source;
  if (isOwnAccount(request) || isDeepStrictEqual(source, before)) return undefined;
  const policies = await policiesOf(kube, namespace);
  const policy = policies.find(({ spec }) => spec.channels.some((channel) => channel.dataSource === name));
  if (policy === undefined) return undefined;
  const channel = policy.status?.channels?.find(({ dataSource }) => dataSource === name);
  const { version } = channel ?? {};
  const formats = ['pvc', 'snapshot'] as const;
  const isPutBack =
    version !== undefined &&
    formats.some((format) => isDeepStrictEqual(source, sourceOfVersion(namespace ?? '', version, format)));
  const { userInfo } = request;
  const right = { verb: 'promote', group, resource: plural, namespace, name: policy.metadata.name };
  if (isPutBack || (await isAllowed(kube, userInfo, right))) return undefined;
  const message = `DataSource ${name} is a channel of GoldenImagePolicy ${policy.metadata.name}, which points it to its versions: user ${userInfo.username} is not allowed to ${wordsOf.promote}: this requires permission to promote ${plural} of ${group} here`;
  return refused('Forbidden', [{ field: 'spec.source', message }]);
};
