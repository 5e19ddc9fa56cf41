// The process in the pod of a Job that boots a version of a golden image: starts it once by QEMU, leaves its report, exits.
import { writeFile } from 'node:fs/promises';
import { BootJobConfig } from '#functions/boot-job/config.ts';
import { serializeBootReport } from '#shared/boot/report.ts';
import { runBoot } from '#shared/boot/run.ts';
import { loadConfig } from '#shared/runtime/config.ts';

const { boot, disk, scratchDir, accelerator, terminationLog } = loadConfig(BootJobConfig);
const ending = new AbortController();
process.once('SIGTERM', () => ending.abort());
process.once('SIGINT', () => ending.abort());
const echo = (piece: Buffer): unknown => process.stdout.write(piece);
const report = await runBoot(boot, { disk, scratchDir, signal: ending.signal, echo, accelerator });
// Without a report, the state of the pod says why it ended.
if (!ending.signal.aborted) await writeFile(terminationLog, serializeBootReport(report));
process.stdout.write(`\n${report.outcome}: ${report.message}\n`);
process.exit(report.outcome === 'passed' ? 0 : 1);
