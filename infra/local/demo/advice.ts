// What to do about an import that failed, by the reason its status gives. Called by the demo.

const advice: Readonly<Record<string, string>> = {
  SourceNotFound: 'check the address: the server has nothing there',
  SourceForbidden: 'the server wants credentials, or does not let this machine in',
  SourceAddressRefused: 'only loopback is allowed beside public addresses: choose another server',
  SourceRefused: 'the server refuses this request: try the address with curl',
  SourceUnreachable: 'nothing listens at that address: check host, port and network',
  SourceUnavailable: 'the server is in trouble: try again later',
  SourceInterrupted: 'the connection broke several times: try again, or use a nearer mirror',
  SourceStalled: 'the server stopped sending: try again, or use another mirror',
  SourceChanged: 'the file is being replaced on the server: try again when that is over',
  NotADiskImage: 'the address gives something else than a disk, often a web page: use the direct link to the file',
  UnsupportedFormat: 'use qcow2, raw, ISO, vmdk, vdi, vhd or vhdx, plain or in gz, xz or zst',
  ImageEncrypted: 'remove the encryption first: qemu-img convert to a plain image',
  ImageCorrupt: 'the file is damaged at its source: look at it with qemu-img check',
  ImageTruncated: 'the file is shorter than it should be: upload it to the server again',
  ExternalReference: 'the image needs another file: flatten it with qemu-img convert',
  ImageTooLarge: 'ask for a larger volume',
  ChecksumMismatch: 'the file is not the one the checksum was made of: check both',
};

export const adviceFor = (reason: string): string =>
  advice[reason] ?? 'look at the message above and at the log named below';
