// What is known of a cluster in which a flow failed: events, objects, logs of pods and of the node's programs. Called by main.ts.
import { execFile } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { NodePaths } from '#local-cluster/node/layout.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const run = promisify(execFile);

const questions = {
  'events.txt': ['get', 'events', '-A', '--sort-by=.lastTimestamp'],
  'pods.txt': ['get', 'pods', '-A', '-o', 'wide'],
  'pods.yaml': ['get', 'pods', '-A', '-o', 'yaml'],
  'jobs.yaml': ['get', 'jobs', '-A', '-o', 'yaml'],
  'storage.txt': ['get', 'pvc,pv,volumesnapshot,volumesnapshotcontent', '-A'],
  'knative.txt': ['get', 'knative', '-A'],
  'bullion.yaml': ['get', 'bullion', '-A', '-o', 'yaml'],
} as const;

/** What cannot be read is noted in its place. */
export const collect = async ({ kubeconfig, logs, dataDir }: NodePaths, folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true });
  const ask = (args: readonly string[]): Promise<string> =>
    run('kubectl', ['--kubeconfig', kubeconfig, ...args], { maxBuffer: 2 ** 28 }).then(
      ({ stdout }) => stdout,
      messageOf,
    );
  for (const [file, args] of Object.entries(questions)) await writeFile(join(folder, file), await ask(args));
  const copies = { [logs]: 'node', [join(dataDir, 'pod-logs')]: 'pods' };
  for (const [from, to] of Object.entries(copies))
    await cp(from, join(folder, to), { recursive: true }).catch(() => undefined);
};
