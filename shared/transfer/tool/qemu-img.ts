// The three uses of qemu-img, always with an explicit format, on files whose headers were verified before.
import { TransferError, targetFull } from '#shared/transfer/fault.ts';
import type { ImageFormat } from '#shared/transfer/format/detect.ts';
import { type ToolEnd, type ToolLimits, runTool } from '#shared/transfer/tool/run-tool.ts';

/** qemu names the vhd format after its original product. */
const driverOf: Readonly<Record<ImageFormat, string>> = {
  qcow2: 'qcow2',
  raw: 'raw',
  iso: 'raw',
  vmdk: 'vmdk',
  vdi: 'vdi',
  vhd: 'vpc',
  vhdx: 'vhdx',
};

const gib = 1024 ** 3;
/** Far above the needs of real images, far below those of a hostile one. */
const checkLimits: ToolLimits = { cpuSeconds: 1800, memoryBytes: 4 * gib };
const convertLimits = { cpuSeconds: 6 * 3600, memoryBytes: 4 * gib };

const missing = (end: ToolEnd): TransferError =>
  new TransferError('InternalFault', `cannot run qemu-img (Debian package qemu-utils): ${end.complaint}`);

/** Throws InternalFault if it cannot be run. Called before anything is downloaded for it. */
export const requireQemuImg = async (signal: AbortSignal): Promise<void> => {
  const end = await runTool({ program: 'qemu-img', args: ['--version'], signal });
  if (end.isMissing) throw missing(end);
};

const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 300) ?? '';

/** `driver=…,file.filename=…`: a comma in a path is doubled. The vhd size is that of the footer, not of the geometry. */
const sourceOptions = (path: string, format: ImageFormat): string => {
  const extra = format === 'vhd' ? ',force_size_calc=current_size' : '';
  return `driver=${driverOf[format]}${extra},file.driver=file,file.filename=${path.replaceAll(',', ',,')}`;
};

/** Verifies the structure of a qcow2. Leaked clusters are harmless. Throws ImageCorrupt with the message of qemu-img. */
export const checkQcow2 = async (path: string, signal: AbortSignal): Promise<void> => {
  const args = ['check', '--output=json', '--image-opts', sourceOptions(path, 'qcow2')];
  const end = await runTool({ program: 'qemu-img', args, signal, limits: checkLimits });
  if (end.isMissing) throw missing(end);
  if (end.status === 0 || end.status === 3) return;
  const detail = lastLine(end.complaint) || `qemu-img check ended with ${end.status ?? 'a signal'}`;
  throw new TransferError('ImageCorrupt', `the structure of the qcow2 is broken or its end is missing: ${detail}`);
};

export interface Conversion {
  readonly path: string;
  readonly format: ImageFormat;
  /** An existing target that reads as zeroes. */
  readonly target: string;
  readonly virtualSize: number;
  readonly signal: AbortSignal;
  /** 0..1. */
  readonly onProgress: (fraction: number) => void;
}

const readProgress = (text: string): number | undefined => {
  const found = [...text.matchAll(/\((\d+(?:\.\d+)?)\/100%\)/g)].at(-1)?.[1];
  return found === undefined ? undefined : Number(found) / 100;
};

const conversionFault = (end: ToolEnd, target: string): TransferError => {
  const detail = lastLine(end.complaint) || `it ended with ${end.status ?? 'a signal'}`;
  if (/no space left|disk quota|file too large/i.test(end.complaint)) return targetFull(target);
  if (/error while writing|could not open '.*partial/i.test(end.complaint)) {
    return new TransferError('TargetFailed', `cannot write to ${target}: ${detail}`);
  }
  return new TransferError('ImageCorrupt', `qemu-img cannot convert the image: ${detail}`);
};

/** Fills `target` with the guest's bytes; zeroes are not written. Throws TransferError. */
export const convertImage = async (conversion: Conversion): Promise<void> => {
  const { path, format, target, virtualSize, signal, onProgress } = conversion;
  const end = await runTool({
    program: 'qemu-img',
    // -n with --target-is-zero: the target exists and holes stay holes. -W is faster for compressed images.
    args: [
      'convert',
      '-p',
      '-n',
      '--target-is-zero',
      '-W',
      '-t',
      'writeback',
      '--image-opts',
      sourceOptions(path, format),
      '-O',
      'raw',
      target,
    ],
    signal,
    limits: { ...convertLimits, fileBytes: virtualSize + 1024 * 1024 },
    onOutput: (text) => {
      const fraction = readProgress(text);
      if (fraction !== undefined) onProgress(fraction);
    },
  });
  if (end.isMissing) throw missing(end);
  if (end.status !== 0) throw conversionFault(end, target);
};
