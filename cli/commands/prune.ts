// `bullion prune`: which versions of golden images nothing keeps any more, what keeps the others, and the end of those.
import { type Call, type ClusterCommand, type ExitCode, exitCodes } from '#cli/command.ts';
import { byHandIn } from '#cli/commands/undelete.ts';
import { screenOf, tableOf } from '#cli/output.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import { policyOf, retentionOf, selects } from '#shared/golden/rollout/policies.ts';
import { deletedAt, prunableVersions, removeVersion } from '#shared/resources/data-import-cron/collect.ts';
import { type ObservedVersion, readCron } from '#shared/resources/data-import-cron/cron.ts';
import { bytesOf } from '#shared/resources/data-import-cron/version.ts';
import { readKept, readPolicy, readVersions } from '#shared/resources/data-import-cron/observed.ts';
import { execute } from '#shared/resources/execute.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { Denied, NotFound, messageOf } from '#shared/runtime/errors.ts';

const { type } = goldenImagePolicyKind;

interface Judged {
  readonly policy: GoldenImagePolicy;
  readonly name: string;
  readonly version: ObservedVersion;
  /** `undefined`: it goes. */
  readonly keptBy: string | undefined;
}

const policiesOf = async ({ kube, namespace, positionals, values }: Call): Promise<readonly GoldenImagePolicy[]> => {
  const isEverywhere = values['all-namespaces'] === true;
  const all = await allIfServed(kube, type, isEverywhere ? {} : { namespace });
  const [name] = positionals;
  const found = name === undefined ? all : all.filter(({ metadata }) => metadata.name === name);
  if (name !== undefined && found.length === 0)
    throw new NotFound(`there is no GoldenImagePolicy ${name} in namespace ${namespace}`);
  return found;
};

/** By the same reading and the same decision as the functions: under the rights of who asks. */
const judge = async (kube: KubeClient, policy: GoldenImagePolicy, now: number): Promise<readonly Judged[]> => {
  const { namespace } = policy.metadata;
  const policies = await allIfServed(kube, type, { namespace });
  const crons = await allIfServed(kube, dataImportCronKind.type, { namespace });
  const own = crons.filter((cron) => policyOf(cron, policies)?.metadata.name === policy.metadata.name);
  const judged = await Promise.all(
    own.map(async (object) => {
      const cron = readCron(object);
      const versions = await readVersions(kube, cron);
      const around = { versions, policy: await readPolicy(kube, cron) };
      const kept = await readKept(kube, cron, { ...around, isDue: true });
      return prunableVersions(cron, { ...around, ...kept }, now).map(({ name, keptBy }): Judged => ({
        policy,
        name,
        keptBy,
        version: versions.get(name) ?? {},
      }));
    }),
  );
  return judged.flat();
};

/** What happens, and until when it can be undone. `until`: milliseconds since the epoch; `undefined`: not at all. */
export const fateOf = (keptBy: string | undefined, until: number | undefined, now: Date): string => {
  if (keptBy !== undefined) return `stays: ${keptBy}`;
  const left = (until ?? 0) - now.getTime();
  return left > 0 ? `is removed in ${toSpan(left)}; to keep it: bullion undelete` : 'would be removed';
};

/** Nothing can be brought back that was not marked yet. */
const untilOf = ({ version, policy }: Judged): number | undefined => {
  const [since, grace] = [deletedAt(version), retentionOf(policy)?.undeleteFor];
  return since === undefined || grace === undefined ? undefined : Date.parse(since) + grace;
};

const formOf = ({ volume, snapshot, dataVolume }: ObservedVersion) => volume ?? snapshot ?? dataVolume;

const showAll = (judged: readonly Judged[], now: Date, most: number | undefined): string =>
  tableOf(
    ['NAMESPACE', 'POLICY', 'VERSION', 'AGE', 'LAST USED', 'SIZE', 'WHAT HAPPENS'],
    judged.map((one) => {
      const { policy, name, version } = one;
      const { creationTimestamp, annotations: notes = {} } = formOf(version)?.metadata ?? {};
      const used = notes[cdiAnnotations.lastUseTime];
      return [
        policy.metadata.namespace,
        policy.metadata.name,
        name,
        toAge(creationTimestamp, now),
        used === undefined ? undefined : toAge(used, now),
        formatBytes(bytesOf(version)),
        fateOf(one.keptBy, untilOf(one), now),
      ];
    }),
    most,
  );

/** What was deleted by hand takes room, too. */
const deletedLines = async (
  { kube, namespace, values }: Call,
  policies: readonly GoldenImagePolicy[],
  now: Date,
): Promise<readonly string[]> => {
  const crons = await allIfServed(
    kube,
    dataImportCronKind.type,
    values['all-namespaces'] === true ? {} : { namespace },
  );
  const own = crons.filter((cron) => policies.some((policy) => selects(policy, cron)));
  return byHandIn(own).map(
    ({ name, until = '', bytes = 0 }) =>
      `${name} was deleted: its ${formatBytes(bytes)} are freed in ${toSpan(Date.parse(until) - now.getTime())} (bullion undelete)\n`,
  );
};

/** Read once more just before: what somebody pinned or uses meanwhile stays. */
const removeAll = async ({ kube, terminal }: Call, going: readonly Judged[]): Promise<ExitCode> => {
  let failed = 0;
  for (const { policy, name } of going) {
    try {
      const now = (await judge(kube, policy, terminal.now().getTime())).find((one) => one.name === name);
      if (now === undefined || now.keptBy !== undefined) {
        terminal.err(`${name} stays: ${now?.keptBy ?? 'it is gone already'}\n`);
        continue;
      }
      await execute(kube, removeVersion(now.version));
      const grace = retentionOf(policy)?.undeleteFor;
      terminal.out(
        `${name} is deleted${grace === undefined ? '' : `; its bytes stay for ${toSpan(grace)} (bullion undelete)`}\n`,
      );
    } catch (error) {
      if (!(error instanceof Denied)) throw error;
      failed += 1;
      terminal.err(`${name} was not deleted: ${messageOf(error)}\n`);
    }
  }
  return failed === 0 ? exitCodes.done : exitCodes.failed;
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, values, terminal } = call;
  const now = terminal.now();
  const policies = await policiesOf(call);
  const judged = (await Promise.all(policies.map((policy) => judge(kube, policy, now.getTime())))).flat();
  const going = judged.filter(({ keptBy }) => keptBy === undefined);
  const freed = going.reduce((sum, { version }) => sum + bytesOf(version), 0);
  if (judged.length > 0) terminal.out(showAll(judged, now, screenOf(call)));
  for (const line of await deletedLines(call, policies, now)) terminal.out(line);
  terminal.err(`${going.length} of ${judged.length} versions can be removed, which frees ${formatBytes(freed)}\n`);
  if (values['dry-run'] === true || going.length === 0) return exitCodes.done;
  if (values['yes'] === true) return removeAll(call, going);
  terminal.err('Nothing was deleted yet. To delete them: --yes\n');
  return exitCodes.failed;
};

export const pruneCommand: ClusterCommand = {
  name: 'prune',
  arguments: '[policy]',
  summary: 'Deletes versions of golden images that are no longer kept, and shows what keeps the others.',
  more: 'What spec.retention of a GoldenImagePolicy allows now, or importsToKeep of its crons: functions do the same after the next import or poll.\nWhere spec.retention.undeleteFor is set, their bytes are kept for that time (bullion undelete) and then freed.\nRequires permission to list what may read from versions, and to delete data volumes, claims and snapshots.\n\n  bullion prune fedora --dry-run\n  bullion prune -A --yes',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'policies of every namespace' },
    'dry-run': { type: 'boolean', help: 'only show what would happen' },
    output: { type: 'string', short: 'o', value: 'FORMAT', help: 'form of what is printed', oneOf: ['wide'] },
    yes: { type: 'boolean', short: 'y', help: 'delete them' },
  },
  completes: 'goldenimagepolicies',
  run,
};
