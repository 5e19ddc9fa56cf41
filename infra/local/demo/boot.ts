// Boots a disk in a virtual machine without graphics or network and waits for a line on its serial port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const emulator = 'qemu-system-x86_64';

export type BootResult =
  | { readonly kind: 'matched'; readonly line: string; readonly seconds: number }
  | { readonly kind: 'silent'; readonly output: readonly string[] }
  | { readonly kind: 'no-emulator' };

/** Ends with the first line that contains `expected`, or after `seconds`. The disk is not written to. */
export const bootDisk = async (path: string, expected: string, seconds = 60): Promise<BootResult> => {
  const started = performance.now();
  const reconcile = `file=${path.replaceAll(',', ',,')},format=raw,if=ide,snapshot=on`;
  const args = [
    '-machine',
    'pc',
    '-m',
    '64',
    '-display',
    'none',
    '-monitor',
    'none',
    '-serial',
    'stdio',
    '-no-reboot',
    '-nic',
    'none',
    '-drive',
    reconcile,
  ];
  const child = spawn(emulator, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const failed = once(child, 'error').then(() => 'no-emulator' as const);
  const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
  const output: string[] = [];
  try {
    const found = await Promise.race([failed, findLine(child.stdout, expected, output)]);
    if (found === 'no-emulator') return { kind: 'no-emulator' };
    if (found === undefined) return { kind: 'silent', output };
    return { kind: 'matched', line: found, seconds: (performance.now() - started) / 1000 };
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
};

const findLine = async (
  output: NodeJS.ReadableStream,
  expected: string,
  lines: string[],
): Promise<string | undefined> => {
  for await (const line of createInterface({ input: output })) {
    lines.push(line);
    if (line.includes(expected)) return line.trim();
  }
  return undefined;
};
