import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bearerOf, configOf, namespaceOf } from '#cli/cluster.ts';
import { exitCodes } from '#cli/command.ts';
import { runCommandLine } from '#cli/run.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const kubeconfig = join(temporaryDirectory(), 'config');
const cluster = (name: string) => ({ name, cluster: { server: `https://${name}.example` } });
const user = (name: string) => ({ name, user: { token: name } });
beforeAll(async () => {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [cluster('near'), cluster('far')],
    users: [user('me'), user('robot')],
    contexts: [
      { name: 'home', context: { cluster: 'near', user: 'me', namespace: 'vms' } },
      { name: 'away', context: { cluster: 'far', user: 'robot' } },
    ],
    'current-context': 'home',
  };
  await writeFile(kubeconfig, JSON.stringify(config));
});

describe('which cluster is meant, and as whom', () => {
  it.each<[values: Record<string, string>, chosen: readonly [string, string, string]]>([
    [{}, ['near', 'me', 'vms']],
    [{ context: 'away' }, ['far', 'robot', 'default']],
    [{ cluster: 'far' }, ['far', 'me', 'vms']],
    [{ user: 'robot' }, ['near', 'robot', 'vms']],
    [{ context: 'away', user: 'me', namespace: 'mine' }, ['far', 'me', 'mine']],
  ])('%j', (values, [server, name, namespace]) => {
    const config = configOf({ kubeconfig, ...values });
    expect(config.getCurrentCluster()?.server).toBe(`https://${server}.example`);
    expect(config.getCurrentUser()?.name).toBe(name);
    expect(namespaceOf(values, config)).toBe(namespace);
  });

  it('shows the token of its user, and none where that has none', async () => {
    expect(await bearerOf(configOf({ kubeconfig, user: 'robot' }))).toBe('robot');
    const config = configOf({ kubeconfig });
    config.loadFromClusterAndUser(
      { name: 'near', server: 'https://near.example', skipTLSVerify: false },
      { name: 'known-by-certificate' },
    );
    expect(await bearerOf(config)).toBeUndefined();
  });

  it.each<[values: Record<string, string>, words: RegExp]>([
    [{ context: 'x' }, /has no context x: it has home, away/],
    [{ cluster: 'x' }, /has no cluster x: it has near, far/],
    [{ user: 'x' }, /has no user x: it has me, robot/],
    [{ kubeconfig: '/nowhere' }, /kubeconfig \/nowhere cannot be read: ENOENT/],
  ])('%j is refused with words and an exit code', async (values, words) => {
    let said = '';
    const terminal = {
      out: () => undefined,
      err: (text: string) => void (said += text),
      isLive: false,
      now: () => new Date(),
    };
    const args = Object.entries({ kubeconfig, ...values }).flatMap(([name, value]) => [`--${name}`, value]);
    const code = await runCommandLine(['images', ...args], { terminal, signal: new AbortController().signal });
    expect([code, said]).toEqual([exitCodes.usage, expect.stringMatching(words)]);
  });
});
