// Hand-made qcow2 headers, for values that qemu-img would never write.

export interface Qcow2Fields {
  readonly version?: number;
  readonly backingOffset?: bigint;
  readonly backingLength?: number;
  readonly clusterBits?: number;
  readonly size?: bigint;
  readonly encryption?: number;
  readonly l1Entries?: number;
  readonly l1Offset?: bigint;
  readonly refcountOffset?: bigint;
  readonly refcountClusters?: number;
  readonly snapshots?: number;
  readonly snapshotsOffset?: bigint;
  readonly autoclear?: bigint;
  readonly incompatible?: bigint;
  readonly refcountOrder?: number;
  readonly headerLength?: number;
  readonly compression?: number;
}

const defaults: Required<Qcow2Fields> = {
  version: 3,
  backingOffset: 0n,
  backingLength: 0,
  clusterBits: 16,
  size: 2n ** 30n,
  encryption: 0,
  l1Entries: 2,
  l1Offset: 0x30000n,
  refcountOffset: 0x10000n,
  refcountClusters: 1,
  snapshots: 0,
  snapshotsOffset: 0n,
  autoclear: 0n,
  incompatible: 0n,
  refcountOrder: 4,
  headerLength: 112,
  compression: 0,
};

/** 4 KiB that start with the header; by default a valid empty disk of 1 GiB. */
export const qcow2Header = (fields: Qcow2Fields = {}): Buffer => {
  const all = { ...defaults, ...fields };
  const bytes = Buffer.alloc(4096);
  bytes.write('QFI\xfb', 0, 'latin1');
  bytes.writeUInt32BE(all.version, 4);
  bytes.writeBigUInt64BE(all.backingOffset, 8);
  bytes.writeUInt32BE(all.backingLength, 16);
  bytes.writeUInt32BE(all.clusterBits, 20);
  bytes.writeBigUInt64BE(all.size, 24);
  bytes.writeUInt32BE(all.encryption, 32);
  bytes.writeUInt32BE(all.l1Entries, 36);
  bytes.writeBigUInt64BE(all.l1Offset, 40);
  bytes.writeBigUInt64BE(all.refcountOffset, 48);
  bytes.writeUInt32BE(all.refcountClusters, 56);
  bytes.writeUInt32BE(all.snapshots, 60);
  bytes.writeBigUInt64BE(all.snapshotsOffset, 64);
  if (all.version < 3) return bytes;
  bytes.writeBigUInt64BE(all.incompatible, 72);
  bytes.writeBigUInt64BE(all.autoclear, 88);
  bytes.writeUInt32BE(all.refcountOrder, 96);
  bytes.writeUInt32BE(all.headerLength, 100);
  bytes.writeUInt8(all.compression, 104);
  return bytes;
};
