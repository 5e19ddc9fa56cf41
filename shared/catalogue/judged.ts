// Every version of every golden image, and what keeps it: by the rules of retention that the functions follow, from lists that were read once. Pure.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { ofType, spotOf } from '#shared/catalogue/disks.ts';
import { policyOf, type PolicyRetention } from '#shared/golden/rollout/policies.ts';
import { isoTime } from '#shared/populate/state.ts';
import { type Inventory, isDataSource } from '#shared/resources/consumers.ts';
import { deletedAt, lastUseOf, prunableVersions } from '#shared/resources/data-import-cron/collect.ts';
import { type CronPolicy, type ObservedVersion, readCron } from '#shared/resources/data-import-cron/cron.ts';
import { type CronForms, cronPolicyOf, keptOf, versionsFrom } from '#shared/resources/data-import-cron/observed.ts';
import { createUsers, type Use, usesOf } from '#shared/resources/data-import-cron/users.ts';

export interface JudgedVersion {
  /** `image`: as `bullion why` takes it. */
  readonly cron: { readonly namespace: string; readonly image: string };
  readonly name: string;
  readonly version: ObservedVersion;
  /** RFC 3339; empty when unknown. */
  readonly lastUse: string;
  /** `undefined`: nothing. */
  readonly keptBy: string | undefined;
  /** Retention alone would let it go. */
  readonly isHeld: boolean;
  /** Milliseconds since the epoch: until when it can be brought back; `undefined`: it cannot, or it is kept. */
  readonly until: number | undefined;
}

const cronSpotOf = ({ metadata }: KubeObject): string | undefined => {
  const cron = metadata.labels?.[cdiLabels.cron] ?? '';
  return cron === '' ? undefined : `${metadata.namespace ?? ''}/${cron}`;
};

const formsByCron = ({ objects, claims, snapshots }: Inventory): ReadonlyMap<string, CronForms> => {
  const byName = new Map(claims.map((claim) => [spotOf(claim), claim]));
  const imports = Map.groupBy(ofType(objects, dataVolumes), cronSpotOf);
  const volumes = Map.groupBy(claims, cronSpotOf);
  const shots = Map.groupBy(snapshots, cronSpotOf);
  const keys = new Set([...imports.keys(), ...volumes.keys(), ...shots.keys()]);
  return new Map(
    [...keys].flatMap((key): readonly (readonly [string, CronForms])[] => {
      if (key === undefined) return [];
      const own = imports.get(key) ?? [];
      // The volume of an import is its own whether or not it took over the labels.
      const others = own.map((one) => byName.get(spotOf(one))).filter((one) => one !== undefined);
      return [
        [key, { imports: own, volumes: [...(volumes.get(key) ?? []), ...others], snapshots: shots.get(key) ?? [] }],
      ];
    }),
  );
};

/** By what is used: a version, or a DataSource. */
const usesBySpot = ({ objects, claims, snapshots }: Inventory): ReadonlyMap<string, readonly Use[]> =>
  Map.groupBy(
    [
      ...objects.filter(isDataSource).flatMap(usesOf.dataSource),
      ...ofType(objects, dataVolumes).flatMap(usesOf.disk),
      ...claims.flatMap(usesOf.claim),
      ...snapshots.flatMap(usesOf.snapshot),
    ],
    ({ namespace = '', name }) => `${namespace}/${name}`,
  );

/** Versions outlive their cron, unless it says otherwise. */
const withoutCron = (key: string, forms: CronForms): readonly JudgedVersion[] => {
  const [namespace = '', name = ''] = key.split('/');
  return [...versionsFrom(forms)].map(([version, found]) => ({
    cron: { namespace, image: `dataimportcron/${name}` },
    name: version,
    version: found,
    lastUse: lastUseOf(version, found, new Map()),
    keptBy: `there is no DataImportCron ${name} that would collect it, or you may not see it`,
    isHeld: false,
    until: undefined,
  }));
};

type Judge = (simulated?: PolicyRetention) => readonly JudgedVersion[];

export const createJudge = (inventory: Inventory, now: number): Judge => {
  const forms = formsByCron(inventory);
  const uses = usesBySpot(inventory);
  const crons = new Map(ofType(inventory.objects, dataImportCronKind.type).map((cron) => [spotOf(cron), cron]));
  const all = ofType(inventory.objects, goldenImagePolicyKind.type);
  const policies = Map.groupBy(all, ({ metadata }) => metadata.namespace);
  // Which channel points to which form is not asked here.
  const rules = new Map<GoldenImagePolicy, CronPolicy>(all.map((policy) => [policy, cronPolicyOf(policy, [])]));
  const judge = (object: DataImportCron, own: CronForms, simulated: PolicyRetention | undefined) => {
    const cron = readCron(object);
    const { namespace } = cron;
    const versions = versionsFrom(own);
    const found = policyOf(object, policies.get(namespace) ?? []);
    const policy = found && rules.get(found);
    const users = createUsers(cron, { versions: [...versions.keys()], policy });
    for (const name of new Set([...versions.keys(), cron.dataSource]))
      for (const use of uses.get(`${namespace}/${name}`) ?? []) users.add(use);
    const kept = keptOf(cron, { versions, policy }, users);
    const around = { versions, policy: simulated === undefined ? policy : { retention: simulated }, ...kept };
    const verdicts = new Map(prunableVersions(cron, around, now).map((one) => [one.name, one.keptBy]));
    const byRule = new Map(
      prunableVersions(cron, { ...around, inUse: new Map() }, now).map((one) => [one.name, one.keptBy]),
    );
    const grace = around.policy?.retention?.undeleteFor;
    return [...versions].map(([name, version]): JudgedVersion => {
      const keptBy = verdicts.has(name) ? verdicts.get(name) : 'it is being removed';
      return {
        cron: { namespace, image: `datasource/${cron.dataSource}` },
        name,
        version,
        lastUse: lastUseOf(name, version, kept.lastDisks),
        keptBy,
        isHeld: keptBy !== undefined && byRule.has(name) && byRule.get(name) === undefined,
        until:
          keptBy !== undefined || grace === undefined
            ? undefined
            : Date.parse(deletedAt(version) ?? isoTime(now)) + grace,
      };
    });
  };
  return (simulated) =>
    [...forms].flatMap(([key, own]) => {
      const cron = crons.get(key);
      return cron === undefined ? withoutCron(key, own) : judge(cron, own, simulated);
    });
};
