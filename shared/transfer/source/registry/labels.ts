// Labels that describe how to run a containerDisk, from its environment: `INSTANCETYPE_KUBEVIRT_IO_DEFAULT_PREFERENCE=fedora` becomes the label
// `instancetype.kubevirt.io/default-preference`, as in CDI. Which of them are copied to volumes is decided where volumes are marked.
import { z } from 'zod';
import type { ImageManifest } from '#shared/clients/registry/manifest.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type LayerContext, blobBytes } from '#shared/transfer/source/registry/layer.ts';

type Labels = Readonly<Record<string, string>>;

const ImageConfig = z.looseObject({
  config: z.looseObject({ Env: z.array(z.string()).nullish() }).nullish(),
});

const marker = 'KUBEVIRT_IO_';

/** A larger configuration is ignored. */
const mostBytes = 1024 * 1024;

/** More of them would not fit into the report. */
const mostLabels = 16;

const isName = (text: string): boolean => /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(text);
const isValue = (text: string): boolean => /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/.test(text);

const keyOf = (variable: string): string | undefined => {
  const at = variable.indexOf(marker);
  const before = variable
    .slice(0, at)
    .split('_')
    .filter((part) => part !== '');
  const domain = [...before, 'kubevirt', 'io'].join('.').toLowerCase();
  const name = variable
    .slice(at + marker.length)
    .replaceAll('_', '-')
    .toLowerCase();
  return at >= 0 && isName(domain) && isName(name) ? `${domain}/${name}` : undefined;
};

/** Labels from variables; those that are not valid labels are skipped. */
export const labelsOfEnvironment = (variables: readonly string[]): Labels =>
  Object.fromEntries(
    variables
      .flatMap((text) => {
        const [, variable = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
        const key = keyOf(variable);
        return key === undefined || !isValue(value) ? [] : [[key, value] as const];
      })
      .slice(0, mostLabels),
  );

/** Labels of an image; empty if its configuration is missing or not that of an image. */
export const readLabels = async (context: LayerContext, { config }: ImageManifest): Promise<Labels> => {
  if (config.size > mostBytes) return {};
  const parts: Buffer[] = [];
  try {
    for await (const part of blobBytes(context, config)) parts.push(part);
  } catch (error) {
    if (error instanceof TransferError && error.code === 'SourceNotFound') return {};
    throw error;
  }
  return labelsOfEnvironment(environmentOf(Buffer.concat(parts).toString('utf8')));
};

const environmentOf = (text: string): readonly string[] => {
  try {
    return ImageConfig.safeParse(JSON.parse(text)).data?.config?.Env ?? [];
  } catch {
    return [];
  }
};
