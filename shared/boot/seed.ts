// A disk that tells cloud-init of a guest to say on the serial console when it has finished: the data source NoCloud, an ISO 9660 image. Pure.

const sector = 2048;
const volumeName = 'CIDATA';

const both = (buffer: Buffer, at: number, value: number): void => {
  buffer.writeUInt32LE(value, at);
  buffer.writeUInt32BE(value, at + 4);
};
const both16 = (buffer: Buffer, at: number, value: number): void => {
  buffer.writeUInt16LE(value, at);
  buffer.writeUInt16BE(value, at + 2);
};

const record = (name: string, { at, bytes, flags }: { at: number; bytes: number; flags: number }): Buffer => {
  const length = 33 + name.length;
  const buffer = Buffer.alloc(length + (length % 2));
  buffer[0] = buffer.length;
  both(buffer, 2, at);
  both(buffer, 10, bytes);
  // Of 2000-01-01: the same seed has the same bytes.
  Buffer.from([100, 1, 1, 0, 0, 0, 0]).copy(buffer, 18);
  buffer[25] = flags;
  both16(buffer, 28, 1);
  buffer[32] = name.length;
  buffer.write(name, 33, 'latin1');
  return buffer;
};

const first = { paths: 18, pathsBigEndian: 19, root: 20, files: 21 } as const;

const descriptor = (sectors: number, pathBytes: number, root: Buffer): Buffer => {
  const buffer = Buffer.alloc(sector);
  buffer[0] = 1;
  buffer.write('CD001', 1, 'latin1');
  buffer[6] = 1;
  buffer.fill(' ', 8, 72);
  buffer.write(volumeName, 40, 'latin1');
  both(buffer, 80, sectors);
  both16(buffer, 120, 1);
  both16(buffer, 124, 1);
  both16(buffer, 128, sector);
  both(buffer, 132, pathBytes);
  buffer.writeUInt32LE(first.paths, 140);
  buffer.writeUInt32BE(first.pathsBigEndian, 148);
  root.copy(buffer, 156);
  buffer.fill(' ', 190, 813);
  buffer.fill('0', 813, 881);
  for (const end of [829, 846, 863, 880]) buffer[end] = 0;
  buffer[881] = 1;
  return buffer;
};

const terminator = (): Buffer => {
  const buffer = Buffer.alloc(sector);
  buffer[0] = 255;
  buffer.write('CD001', 1, 'latin1');
  buffer[6] = 1;
  return buffer;
};

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((sector - (bytes.length % sector)) % sector)]);

/** An ISO 9660 image with small files in its root, whose names Linux shows in lower case. */
export const isoOf = (files: Readonly<Record<string, string>>): Buffer => {
  const contents = Object.entries(files)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => ({ name: `${name.toUpperCase()}.;1`, bytes: Buffer.from(text) }));
  let at: number = first.files;
  const records = contents.map(({ name, bytes }) => {
    const made = record(name, { at, bytes: bytes.length, flags: 0 });
    at += Math.ceil(bytes.length / sector);
    return made;
  });
  const ofRoot = { at: first.root, bytes: sector, flags: 2 };
  const root = Buffer.concat([record('\0', ofRoot), record('\x01', ofRoot), ...records]);
  const paths = Buffer.from([1, 0, first.root, 0, 0, 0, 1, 0, 0, 0]);
  const pathsBigEndian = Buffer.from([1, 0, 0, 0, 0, first.root, 0, 1, 0, 0]);
  return Buffer.concat([
    Buffer.alloc(16 * sector),
    descriptor(at, paths.length, record('\0', ofRoot)),
    terminator(),
    padded(paths),
    padded(pathsBigEndian),
    padded(root),
    ...contents.map(({ bytes }) => padded(bytes)),
  ]);
};

/** What the guest writes when cloud-init has finished. `token`: no image knows it. */
export const finishedLine = (token: string): string => `bullion: cloud-init has finished ${token}`;

/** In two parts: what cloud-init writes about the command itself must not look like the line. */
const commandOf = (token: string): string =>
  `for at in /dev/ttyS0 /dev/console; do printf '\\n%s %s\\n' 'bullion: cloud-init has finished' '${token}' > "$at" && break; done`;

/** JSON is YAML. The network is left as it is: the guest has one, without anybody on it. */
export const seedOf = (token: string): Buffer =>
  isoOf({
    'meta-data': `${JSON.stringify({ 'instance-id': `bullion-${token}`, 'local-hostname': 'bullion-boot' })}\n`,
    'user-data': `#cloud-config\n${JSON.stringify({ runcmd: [['sh', '-c', commandOf(token)]] })}\n`,
  });
