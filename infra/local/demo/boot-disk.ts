// A small bootable disk: a boot sector that prints one line on the serial port and halts, a partition, and data to copy.
import { spawn } from 'node:child_process';
import { createCipheriv } from 'node:crypto';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';

const sectorBytes = 512;
const mib = 2 ** 20;

/** The line printed on COM1. */
export const bootLine = 'Bullion demo disk: booted from the imported volume.';

/** Address to which the BIOS loads a boot sector. */
const loadAddress = 0x7c00;
/** Position of the partition table in a boot sector. */
const partitionTable = 446;
const firstPartitionSector = 2048;

/** Sends one byte to a port of COM1: mov dx, port; mov al, value; out dx, al. */
const sendTo = (port: number, value: number): readonly number[] => [0xba, port & 0xff, port >> 8, 0xb0, value, 0xee];

/** 115200 baud, 8 bits, no parity: divisor latch open, divisor 1, latch closed. */
const setUpSerial = [...sendTo(0x3fb, 0x80), ...sendTo(0x3f8, 1), ...sendTo(0x3f9, 0), ...sendTo(0x3fb, 3)];

/** cli; cld; xor ax, ax; mov ds, ax */
const prologue = [0xfa, 0xfc, 0x31, 0xc0, 0x8e, 0xd8];

const toBytes = (hex: string): readonly number[] => [...Buffer.from(hex.replaceAll(' ', ''), 'hex')];

const printAndHalt = [
  'ac', // next: lodsb
  '84 c0', // test al, al
  '74 12', // jz halt
  '88 c4', // mov ah, al
  'ba fd 03', // wait: mov dx, 0x3fd (line status)
  'ec', // in al, dx
  'a8 20', // test al, 0x20 (room to send)
  '74 f8', // jz wait
  '88 e0', // mov al, ah
  'ba f8 03', // mov dx, 0x3f8
  'ee', // out dx, al
  'eb e9', // jmp next
  'fa f4 eb fd', // halt: cli; hlt; jmp to hlt
].flatMap((hex) => toBytes(hex));

/** A master boot record: the program, one Linux partition of `partitionSectors`, the signature. */
export const buildBootSector = (line: string, partitionSectors: number): Buffer => {
  const sector = Buffer.alloc(sectorBytes);
  const textAt = prologue.length + 3 + setUpSerial.length + printAndHalt.length;
  const address = loadAddress + textAt;
  const loadText = [0xbe, address & 0xff, address >> 8]; // mov si, text
  const text = Buffer.from(`${line}\r\n\0`, 'latin1');
  const program = Buffer.concat([Buffer.from([...prologue, ...loadText, ...setUpSerial, ...printAndHalt]), text]);
  if (program.length > partitionTable)
    throw new RangeError(`the line has ${text.length} bytes and does not fit a boot sector`);
  program.copy(sector);
  sector[partitionTable] = 0x80; // bootable
  sector[partitionTable + 4] = 0x83; // Linux
  sector.writeUInt32LE(firstPartitionSector, partitionTable + 8);
  sector.writeUInt32LE(partitionSectors, partitionTable + 12);
  sector.writeUInt16BE(0x55aa, sectorBytes - 2);
  return sector;
};

interface BootDiskSize {
  /** Bytes of the disk. */
  readonly bytes: number;
  /** Bytes of data that are incompressible and unique, deterministic. */
  readonly dataBytes: number;
  /** What it prints on COM1. Default: `bootLine`. */
  readonly line?: string;
}

/** Writes a raw disk: boot sector, data scattered in 1 MiB pieces over the partition, zeroes elsewhere. */
export const writeBootDisk = async (
  path: string,
  { bytes, dataBytes, line = bootLine }: BootDiskSize,
): Promise<void> => {
  const start = firstPartitionSector * sectorBytes;
  const pieces = Math.floor(dataBytes / mib);
  const stride = Math.floor((bytes - start) / Math.max(pieces, 1) / mib) * mib;
  if (stride < mib) throw new RangeError(`${dataBytes} bytes of data do not fit a disk of ${bytes}`);
  const noise = createCipheriv('aes-128-ctr', Buffer.alloc(16, 'bullion'), Buffer.alloc(16));
  await using disk = await open(path, 'w');
  await disk.truncate(bytes);
  await disk.write(buildBootSector(line, bytes / sectorBytes - firstPartitionSector), 0, sectorBytes, 0);
  for (let piece = 0; piece < pieces; piece += 1) {
    await disk.write(noise.update(Buffer.alloc(mib)), 0, mib, start + piece * stride);
  }
};

// Boots a disk in a virtual machine without graphics or network and waits for a line on its serial port.

const emulator = 'qemu-system-x86_64';

type BootResult =
  | { readonly kind: 'matched'; readonly line: string; readonly seconds: number }
  | { readonly kind: 'silent'; readonly output: readonly string[] }
  | { readonly kind: 'no-emulator' };

/** Ends with the first line that contains `expected`, or after `seconds`. The disk is not written to. */
export const bootDisk = async (path: string, expected: string, seconds = 60): Promise<BootResult> => {
  const started = performance.now();
  const drive = `file=${path.replaceAll(',', ',,')},format=raw,if=ide,snapshot=on`;
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
    drive,
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
