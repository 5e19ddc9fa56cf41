// `bullion uninstall`: removes images first and what moves them afterwards, so that no object waits for functions that are gone.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, type ClusterCommand, type ExitCode, exitCodes } from '#cli/command.ts';
import { createLine } from '#cli/line.ts';
import { type Held, installedKinds, letGo, listObjects, partOfUs, release } from '#cli/uninstall.ts';
import { timeoutOf } from '#cli/wait.ts';
import { namespaces, persistentVolumes } from '#shared/api/foreign/core.ts';
import {
  crds,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '#shared/api/foreign/kubernetes.ts';
import { finalizers, systemNamespace } from '#shared/api/names.ts';
import { keyOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import { findTarget, targetName } from '#shared/backup/open.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { releaseMachines } from '#shared/resources/machine-disks/hold.ts';

// What was installed, removed in the order in which nothing waits for what is gone: doors first, then functions, definitions last.

const pollMs = 500;

const typeOf = (apiVersion: string, kind: string, namespaced = false): ResourceType => {
  const [group = '', version = ''] = apiVersion.split('/');
  return { group, version, kind, plural: `${kind.toLowerCase()}s`, namespaced };
};
const rbac = 'rbac.authorization.k8s.io/v1';

/** An outage of what answers them would keep everything else from going. */
const doors: readonly ResourceType[] = [
  validatingWebhookConfigurations,
  mutatingWebhookConfigurations,
  typeOf('apiregistration.k8s.io/v1', 'APIService'),
];

/** Outside our namespace, which takes along all that is in it. The volume is of the component `nfs-backups`: the export itself stays. */
const outside: readonly ResourceType[] = [
  persistentVolumes,
  typeOf(rbac, 'RoleBinding', true),
  typeOf(rbac, 'ClusterRoleBinding'),
  typeOf(rbac, 'ClusterRole'),
];

/** Of a kind, all that carries our label; gives how many there were. */
const removeAll = async (kube: KubeClient, type: ResourceType): Promise<number> => {
  let count = 0;
  const found: KubeObject[] = [];
  for await (const object of kube.listAll(type, { labelSelector: partOfUs })) found.push(object);
  for (const object of found) {
    await kube.delete(type, keyOf(object));
    count += 1;
  }
  return count;
};

interface UninstallWait {
  readonly kube: KubeClient;
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Whether it is over before the time is. */
const until = async ({ deadline, signal }: UninstallWait, isOver: () => Promise<boolean>): Promise<boolean> => {
  for (;;) {
    if (await isOver()) return true;
    if (performance.now() >= deadline || signal.aborted) return false;
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
};

/** Functions, Broker, sources, secrets. */
const removeNamespace = async (wait: UninstallWait): Promise<boolean> => {
  await wait.kube.delete(namespaces, { name: systemNamespace });
  return until(wait, async () => (await wait.kube.get(namespaces, { name: systemNamespace })) === undefined);
};

const removeDefinitions = async (wait: UninstallWait): Promise<boolean> => {
  await removeAll(wait.kube, crds);
  return until(wait, async () => (await wait.kube.list(crds, { labelSelector: partOfUs })).items.length === 0);
};

const defaultTimeoutMs = 10 * 60_000;
/** Lines about objects that are shown before the rest is only counted. */
const mostShown = 20;

const nameOf = ({ type, object: { metadata } }: Held): string =>
  `${type.kind.toLowerCase()}.${type.group}/${metadata.name}${metadata.namespace === undefined ? '' : ` -n ${metadata.namespace}`}`;

const listOf = (held: readonly Held[]): string => {
  const lines = held
    .slice(0, mostShown)
    .map((one) => `  ${nameOf(one)}${one.refusal === undefined ? '' : `: ${one.refusal}`}`);
  const rest = held.length - lines.length;
  return `${[...lines, ...(rest > 0 ? [`  and ${rest} more`] : [])].join('\n')}\n`;
};

/** A deletion is noted in the backup target, whyever it was asked for, and nothing that has the note is restored. */
const warnOfBackups = async ({ kube, terminal }: Call, found: readonly Held[]): Promise<void> => {
  const kept = found.filter(({ object }) => object.metadata.finalizers?.includes(finalizers.backup) === true);
  const read = kept.length === 0 ? undefined : await findTarget(kube);
  if (read?.is !== 'set') return;
  terminal.err(
    `${kept.length} of them are kept in ${read.target.name}, where their deletion is recorded: no cluster restores them afterwards. To be able to restore them later,\n` +
      `remove the target first: the ConfigMap ${targetName} in ${systemNamespace}, or Harvester's setting of that name.\n`,
  );
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, values, terminal, signal } = call;
  const deadline = performance.now() + (timeoutOf(values) ?? defaultTimeoutMs);
  const types = await installedKinds(kube);
  const found = await listObjects(kube, types);
  if (values['yes'] !== true) {
    terminal.out(listOf(found));
    await warnOfBackups(call, found);
    terminal.err(
      `${found.length} objects would be deleted, with their volumes and snapshots, and then Bullion. To continue: --yes.\n`,
    );
    return exitCodes.failed;
  }
  const line = createLine(terminal);
  const onLook = (left: number) => line.show(`${left} objects left`);
  const left = await letGo({ kube, types, deadline, signal, onLook });
  line.end();
  if (left.length > 0) {
    terminal.err(
      `Not uninstalled: ${left.length} objects are still held, and need the functions to release them.\n${listOf(left)}`,
    );
    terminal.err(
      'bullion why <image> -n <namespace> says what each waits for; run the same command again to resume.\n',
    );
    return exitCodes.timedOut;
  }
  signal.throwIfAborted();
  return removeInstallation(call, deadline, types);
};

const removeInstallation = async (
  { kube, terminal, signal }: Call,
  deadline: number,
  types: readonly ResourceType[],
): Promise<ExitCode> => {
  const wait = { kube, deadline, signal };
  for (const type of doors) await removeAll(kube, type);
  terminal.err(`removing namespace ${systemNamespace}\n`);
  if (!(await removeNamespace(wait))) {
    terminal.err(
      `Namespace ${systemNamespace} is still there: kubectl get namespace ${systemNamespace} -o yaml says why.\n`,
    );
    return exitCodes.timedOut;
  }
  await release(kube, types);
  terminal.err('removing kinds\n');
  if (!(await removeDefinitions(wait))) {
    terminal.err(
      'Kinds are still there: kubectl get crds -l app.kubernetes.io/part-of=bullion. Run the same command again to continue.\n',
    );
    return exitCodes.timedOut;
  }
  for (const type of outside) await removeAll(kube, type);
  // Machines stay, and none may wait for functions that are gone: last, since one that still runs (those of the local cluster do) takes hold of them
  // again as long as it has the right to.
  await releaseMachines(kube);
  terminal.err('Bullion is uninstalled.\n');
  return exitCodes.done;
};

export const uninstallCommand: ClusterCommand = {
  name: 'uninstall',
  arguments: '',
  summary: 'Removes every image and disk of the kinds that Bullion serves, and then Bullion itself.',
  more:
    'Objects are removed first, while functions still run to release them; then webhooks, functions, kinds and roles. While an object is still held,\n' +
    'nothing else is removed. Requires the rights of an administrator. Objects in an object store stay there. Images in a backup target are recorded there\n' +
    'as deleted and are not restored, unless the target is removed first (the ConfigMap or setting backup-target).\n\n  bullion uninstall\n  bullion uninstall --yes',
  options: {
    yes: { type: 'boolean', help: 'uninstall; without this option, only list what would be removed' },
    timeout: { type: 'string', value: 'TIME', help: 'longest wait, such as 90s, 10m or 2h (10m)' },
  },
  run,
};
