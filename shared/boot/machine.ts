// The arguments of QEMU for one boot. Pure.
import type { BootRequest } from '#shared/boot/report.ts';

export const program = 'qemu-system-x86_64';

/** File descriptor of the channel of the guest agent. */
export const agentDescriptor = 3;

export const accelerators = ['kvm', 'emulation'] as const;
export type Accelerator = (typeof accelerators)[number];

export interface Machine {
  readonly request: BootRequest;
  /** A raw file or a device that may be written to. */
  readonly disk: string;
  readonly seed: string;
  readonly accelerator: Accelerator;
  /** With `firmware: efi`: code, and a copy of its variables. */
  readonly efi?: { readonly code: string; readonly variables: string } | undefined;
  /** With a port: that of this machine which leads there. */
  readonly forwardedFrom?: number | undefined;
}

/** Option values of QEMU end at a comma, unless it is doubled. */
const escaped = (path: string): string => path.replaceAll(',', ',,');

type Options = readonly (readonly string[])[];

const accelerated: Readonly<Record<Accelerator, string>> = { kvm: 'kvm', emulation: 'tcg,thread=multi,tb-size=256' };

const firmwareOf = ({ efi }: Machine): Options =>
  efi === undefined
    ? []
    : [
        ['-drive', `if=pflash,format=raw,unit=0,readonly=on,file=${escaped(efi.code)}`],
        ['-drive', `if=pflash,format=raw,unit=1,file=${escaped(efi.variables)}`],
      ];

/** Nobody is on it but what gives out an address, so that guests do not wait for a network; nothing leads out of it. */
const networkOf = ({ request: { port }, forwardedFrom }: Machine): Options => {
  const forwarded =
    port === undefined || forwardedFrom === undefined ? '' : `,hostfwd=tcp:127.0.0.1:${forwardedFrom}-:${port}`;
  return [
    ['-netdev', `user,id=net,restrict=on${forwarded}`],
    ['-device', 'virtio-net-pci,netdev=net,romfile='],
  ];
};

/** What the host can. Without hints about flaws of processors: nested hosts have them and do not pass them on. */
const processors: Readonly<Record<Accelerator, string>> = { kvm: 'max,arch-capabilities=off', emulation: 'max' };

const sandbox: Options =
  process.platform === 'linux'
    ? [['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny']]
    : [];

/** No graphics: the firmware then shows on the serial console what it would show on a screen. */
const bare = (accelerator: Accelerator, memoryMib: number): Options => [
  ['-nodefaults', '-no-user-config'],
  ['-machine', 'q35,graphics=off'],
  ['-accel', accelerated[accelerator]],
  ['-cpu', processors[accelerator]],
  ['-m', `${memoryMib}M`],
  ['-display', 'none', '-monitor', 'none', '-serial', 'stdio'],
  ...sandbox,
];

/** A machine by KVM with nothing to start. */
export const probeArguments = (): readonly string[] => bare('kvm', 64).flat();

export const argumentsOf = (machine: Machine): readonly string[] => {
  const options: Options = [
    ...bare(machine.accelerator, machine.request.memoryMib),
    ['-smp', '2'],
    ['-boot', 'strict=on'],
    ...firmwareOf(machine),
    ['-drive', `if=none,id=disk,format=raw,cache=unsafe,discard=unmap,file=${escaped(machine.disk)}`],
    ['-device', 'virtio-blk-pci,drive=disk,bootindex=1'],
    ['-drive', `if=none,id=seed,format=raw,readonly=on,file=${escaped(machine.seed)}`],
    ['-device', 'virtio-blk-pci,drive=seed'],
    ['-device', 'virtio-rng-pci', '-device', 'pvpanic', '-device', 'virtio-serial-pci'],
    ['-chardev', `socket,id=agent,fd=${agentDescriptor}`],
    ['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
    ...networkOf(machine),
  ];
  return options.flat();
};
