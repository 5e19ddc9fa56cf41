// The real gpg with a separate home: keys, and signatures by them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Gpg {
  /** Its output. `at`: RFC 3339, its current time. */
  run(
    args: readonly string[],
    options?: { readonly input?: string | Buffer | undefined; readonly at?: string | undefined },
  ): Buffer;
  /** Fingerprint of a new key. `expires` in the format of gpg: `1y`, `seconds=60`, `0`. */
  key(name: string, options?: { readonly at?: string; readonly expires?: string; readonly algorithm?: string }): string;
  exported(...keys: readonly string[]): Buffer;
  /** Revokes a key of this home. */
  revoke(key: string): void;
  /** A clear-signed text. */
  clear(text: string, key: string, at?: string): Buffer;
  /** A detached armored signature; `extra`: other options. */
  detached(data: Buffer | string, key: string, extra?: readonly string[], at?: string): Buffer;
  close(): void;
}

/** gpg's format of a constant time. */
const timeOf = (at: string): string => `${at.replace(/[-:]/g, '').slice(0, 15)}!`;

const common = ['--batch', '--yes', '--no-tty', '--pinentry-mode', 'loopback', '--passphrase', ''];

export const startGpg = (): Gpg => {
  const home = mkdtempSync(join(tmpdir(), 'gpg-'));
  const run: Gpg['run'] = (args, { input, at } = {}) => {
    const time = at === undefined ? [] : ['--faked-system-time', timeOf(at)];
    const { status, stdout, stderr } = spawnSync('gpg', ['--homedir', home, ...common, ...time, ...args], { input });
    if (status !== 0) throw new Error(`gpg ${args.join(' ')}: ${stderr?.toString()}`);
    return stdout;
  };
  return {
    run,
    key: (name, { at, expires = '0', algorithm = 'ed25519' } = {}) => {
      run(['--quick-generate-key', `${name} <${name}@example.org>`, algorithm, 'cert,sign', expires], { at });
      const listed = run(['--with-colons', '--list-keys', `${name}@example.org`]).toString();
      return /^fpr:+([0-9A-F]+):/m.exec(listed)?.[1] ?? '';
    },
    exported: (...keys) => run(['--armor', '--export', ...keys]),
    revoke: (key) => {
      const folder = join(home, 'openpgp-revocs.d');
      const [file = ''] = readdirSync(folder).filter((name) => name.startsWith(key));
      // gpg writes it so that it is not imported by accident.
      const text = readFileSync(join(folder, file), 'utf8').replace(':-----BEGIN', '-----BEGIN');
      writeFileSync(join(home, 'revoke.asc'), text);
      run(['--import', join(home, 'revoke.asc')]);
    },
    clear: (text, key, at) => run(['--local-user', key, '--clear-sign'], { input: text, at }),
    detached: (data, key, extra = ['--armor'], at) =>
      run(['--local-user', `${key}!`, ...extra, '--detach-sign'], { input: data, at }),
    close: () => {
      spawnSync('gpgconf', ['--homedir', home, '--kill', 'all']);
      rmSync(home, { recursive: true, force: true });
    },
  };
};
