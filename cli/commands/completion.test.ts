// What shells make of the scripts that complete the command line. A shell that is not installed is left out.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { runBullion } from '#test/support/bullion.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
const scriptOf = (shell: string): string => join(dir, `completion.${shell}`);
const has = (shell: string): boolean => [`/bin/${shell}`, `/usr/bin/${shell}`].some((path) => existsSync(path));

beforeAll(async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out } = await runBullion(['completion', shell]);
    await writeFile(scriptOf(shell), out);
  }
  await writeFile(join(dir, 'disk.qcow2'), '');
  // Stands for the command itself, with the names it would list: of the cluster that was asked for.
  const fake = `#!/bin/sh
case "$*" in
  "completion "*) echo "$2"-of"$4" ;;
  "get datavolumes "*) echo datavolume.cdi.kubevirt.io/fedora-1 ;;
  *"-n far"*) echo virtualmachineimage.harvesterhci.io/other ;;
  *) echo x/jammy; echo x/noble ;;
esac
`;
  const { out } = await runBullion(['completion', 'kubectl']);
  const programs = { bullion: fake, 'kubectl-bullion': fake, 'kubectl_complete-bullion': out };
  for (const [name, text] of Object.entries(programs)) await writeFile(join(dir, name), text, { mode: 0o755 });
});

const shell = async (name: string, ...args: readonly string[]): Promise<string> => {
  const path = [dir, process.env['PATH']].join(delimiter);
  const { stdout } = await run(name, args, {
    env: { PATH: path, HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir, TERM: 'dumb' },
  });
  return stdout.trim();
};

describe.skipIf(!has('bash'))('bash completes', () => {
  it.each([
    ['bullion im', 'import images'],
    ['bullion -n vms im', 'import images'],
    ['bullion --con', '--context'],
    ['bullion import --sto', '--storage-class'],
    ['bullion import --group h', 'hypercloud harvester'],
    ['bullion import --group = h', 'hypercloud harvester'],
    ['bullion why j', 'jammy'],
    ["bullion why ''", 'jammy noble'],
    ["bullion -n far why ''", 'other'],
    ['bullion why jammy -o w', 'wide'],
    [`bullion download jammy -o ${dir}/disk`, `${dir}/disk.qcow2`],
    [`bullion download jammy --output = ${dir}/disk`, `${dir}/disk.qcow2`],
    ['bullion download jammy --format r', 'raw'],
    ["bullion download jammy -n ''", 'namespaces-of'],
    ["bullion --context near images -n ''", 'namespaces-ofnear'],
    ['bullion disk root jammy --from name', 'namespaces-of'],
    ["bullion --context ''", 'contexts-of'],
    ["bullion download jammy --token ''", ''],
    ['bullion get datav', 'datavolumes'],
    ["bullion mark-bad ''", 'fedora-1'],
    ['bullion completion f', 'fish'],
    ['bullion help re', 'retry'],
  ])('%s', async (words, offered) => {
    const ask = `source ${scriptOf('bash')}; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _bullion; echo "\${COMPREPLY[@]}"`;
    expect(await shell('bash', '-c', ask)).toBe(offered);
  });
});

it.skipIf(!has('bash')).each([
  [['im'], ['import', 'images']],
  [['why', 'j'], ['jammy']],
  [['images', '-n', ''], ['namespaces-of']],
])('kubectl completes the plugin: %j', async (words, offered) => {
  expect((await shell(join(dir, 'kubectl_complete-bullion'), ...words)).split('\n')).toEqual([...offered, ':4']);
});

describe.skipIf(!has('fish'))('fish completes', () => {
  it.each([
    ['bullion im', ['images', 'import']],
    ['bullion why j', ['jammy']],
    ['bullion import --group h', ['harvester', 'hypercloud']],
    ['bullion images -o w', ['wide']],
    [`bullion download jammy -o ${dir}/disk`, [`${dir}/disk.qcow2`]],
    ['bullion completion z', ['zsh']],
  ])('%s', async (words, offered) => {
    const said = await shell('fish', '--no-config', '-c', `source ${scriptOf('fish')}; complete -C '${words}'`);
    const names = said.split('\n').map((line) => line.split('\t')[0]);
    expect(names.toSorted((a = '', b = '') => a.localeCompare(b))).toEqual(offered);
  });
});

it.skipIf(!has('zsh'))('zsh takes the script, with nothing loaded before', async () => {
  const ask = `source ${scriptOf('zsh')} && print -r -- \${_comps[bullion]} && whence -w _bullion`;
  expect(await shell('zsh', '-fc', ask)).toMatch(/_bash_complete.*_bullion[\s\S]*_bullion: function/);
});
