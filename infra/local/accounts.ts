// Every part of the product uses its own service account, as in production, so that a permission missing in its role is noticed here first.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** Validity of a token in seconds; each start creates new ones. */
const tokenSeconds = 365 * 24 * 3600;

const Kubeconfig = z.looseObject({
  users: z.array(z.object({ name: z.string(), user: z.looseObject({}) })).length(1),
});

export interface AccountsOptions {
  /** Of the administrator: contains the address of the server. */
  readonly kubeconfigPath: string;
  readonly namespace: string;
  /** Directory of the kubeconfigs, readable only by their owner. */
  readonly dir: string;
}

/** Writes a kubeconfig for each account, which must exist; returns their paths by account. */
export const createAccounts = async <Name extends string>(
  kube: KubeClient,
  names: readonly Name[],
  options: AccountsOptions,
): Promise<Readonly<Record<Name, string>>> => {
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  const base = Kubeconfig.parse(parse(await readFile(options.kubeconfigPath, 'utf8')));
  const paths: [Name, string][] = [];
  for (const name of names) {
    const token = await requestToken(kube, options.namespace, name);
    const users = base.users.map((user) => ({ name: user.name, user: { token } }));
    const path = join(options.dir, `${name}.kubeconfig`);
    await writeFile(path, stringify({ ...base, users }), { mode: 0o600 });
    paths.push([name, path]);
  }
  return Object.fromEntries(paths) as Record<Name, string>;
};

const requestToken = async (kube: KubeClient, namespace: string, name: string): Promise<string> => {
  const { status } = await kube.raw<{ readonly status: { readonly token: string } }>({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [], expirationSeconds: tokenSeconds },
    },
  });
  return status.token;
};
