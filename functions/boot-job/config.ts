// The input of boot-job, from the environment that a policy writes into the Job.
import { z } from 'zod';
import { accelerators } from '#shared/boot/machine.ts';
import { BootRequest } from '#shared/boot/report.ts';
import { jsonText, setting } from '#shared/runtime/config.ts';

export const BootJobConfig = z.object({
  boot: setting('BULLION_BOOT', 'What shows that the guest has started: a BootRequest as JSON.', jsonText(BootRequest)),
  disk: setting('BULLION_DISK', 'The disk to boot: a raw file or a device that may be written to.', z.string().min(1)),
  scratchDir: setting('BULLION_SCRATCH', 'Folder for temporary files.', z.string().min(1)),
  accelerator: setting(
    'BULLION_ACCELERATOR',
    'What runs the guest, kvm or emulation. Default: KVM where it works.',
    z.enum(accelerators).optional(),
  ),
  terminationLog: setting(
    'BULLION_TERMINATION_LOG',
    'File that receives the report.',
    z.string().default('/dev/termination-log'),
  ),
});
