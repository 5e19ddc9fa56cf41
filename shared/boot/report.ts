// The request to boot-job and its report: the interface between the functions that start the Job and its process.
import { z } from 'zod';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** What shows that a guest has started. */
export const bootSigns = ['AgentConnected', 'Running', 'CloudInitFinished', 'ConsoleText', 'PortAnswers'] as const;

export const BootRequest = z.object({
  until: z.enum(bootSigns),
  /** With `ConsoleText`. */
  text: z.string().min(1).optional(),
  /** With `PortAnswers`. */
  port: z.int().min(1).max(65_535).optional(),
  /** With `Running`: how long the guest must run. */
  runningForMs: z.int().min(0).optional(),
  /** Default: by whether the processor is emulated. */
  timeoutMs: z.int().min(1).optional(),
  memoryMib: z.int().min(1),
  firmware: z.enum(['bios', 'efi']),
});
export type BootRequest = z.infer<typeof BootRequest>;

/** Milliseconds that a guest has by default. Emulation is five to twenty times slower, and takes longer to say anything. */
export const usualTimeoutMs = { kvm: 5 * 60_000, emulation: 15 * 60_000 } as const;
/** Milliseconds that a guest must run with `Running`. */
export const usualRunMs = 60_000;

export const BootReport = z.object({
  /** `timed out`: the sign did not come; `not run`: nothing is known of the guest. */
  outcome: z.enum(['passed', 'failed', 'timed out', 'not run']),
  message: z.string(),
  /** The last lines of the serial console. */
  console: z.string(),
});
export type BootReport = z.infer<typeof BootReport>;

/** The kubelet keeps 4096 bytes of a termination message. */
const mostBytes = 4000;
const mostMessage = 500;

/** JSON that fits. Of the console, the end is kept. */
export const serializeBootReport = (report: BootReport): string => {
  const message = report.message.slice(0, mostMessage);
  let { console } = report;
  for (;;) {
    const text = JSON.stringify({ ...report, message, console });
    const over = Buffer.byteLength(text) - mostBytes;
    if (over <= 0 || console === '') return text;
    console = console.slice(Math.max(1, Math.ceil(over / 6)));
  }
};

/** `undefined`: it says nothing that can be read. */
export const parseBootReport = (text: string): BootReport | undefined => parseJsonAs(BootReport, text);
