// What each service account was handled do at the embedded API server, gathered over every test file of a run in one folder.
import { appendFileSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Audit } from '#local-cluster/api-server/handlers/call.ts';
import { systemNamespace, tenantLimits } from '#shared/api/names.ts';

/** One thing an account did; all that a rule of RBAC can ask about it. */
export interface AccountCall {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  /** Plural, and the subresource behind a slash. */
  readonly resource: string;
  /** Empty: all namespaces, or no namespace. */
  readonly namespace: string;
  /** Empty for collections. */
  readonly name: string;
}

const prefix = `system:serviceaccount:${systemNamespace}:`;

/** Namespaces and names that rules ask for; others are all the same to them, and tests make no end of them. */
const keptNamespaces = new Set([systemNamespace, '']);

const keptNames = new Set<string>([tenantLimits]);

/** An audit that writes down each kind of call once for this process; none without a folder. */
export const recordCalls = (folder: string | undefined): Audit | undefined => {
  if (folder === undefined || folder === '') return undefined;
  const file = join(folder, `${process.pid}.jsonl`);
  const observed = new Set<string>();
  return ({ username }, { verb, group = '', plural = '', subresource = '', namespace = '', name = '' }) => {
    if (!username.startsWith(prefix)) return;
    const isOwn = keptNamespaces.has(namespace);
    const line = JSON.stringify({
      account: username.slice(prefix.length),
      verb,
      group,
      resource: subresource === '' ? plural : `${plural}/${subresource}`,
      namespace: isOwn ? namespace : '*',
      name: isOwn || keptNames.has(name) ? name : '',
    } satisfies AccountCall);
    if (observed.has(line)) return;
    observed.add(line);
    appendFileSync(file, `${line}\n`);
  };
};

export const readCalls = (folder: string): readonly AccountCall[] => {
  const lines = globSync('*.jsonl', { cwd: folder }).flatMap((file) =>
    readFileSync(join(folder, file), 'utf8').trim().split('\n'),
  );
  return [...new Set(lines)].map((line) => JSON.parse(line) as AccountCall);
};
