// Where a Harvester image comes from, by its `sourceType`. Called by the dialect; what is missing here is a fault of the rules.
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import type { ImageSource } from '#shared/backends/image.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';
import { textOf } from '#shared/resources/harvester-image/rules.ts';

type Spec = HarvesterImage['spec'];

const readDownload = ({ url = '' }: Spec): ImageSource | undefined => {
  const parsed = parseSourceUrl(url);
  return 'value' in parsed ? { type: 'http', url: parsed.value } : undefined;
};

const readExport = ({ pvcName, pvcNamespace }: Spec): ImageSource | undefined => {
  const [claimName, namespace] = [textOf(pvcName), textOf(pvcNamespace)];
  return claimName === undefined || namespace === undefined
    ? undefined
    : { type: 'export-from-volume', namespace, claimName };
};

const readClone = ({ securityParameters: of }: Spec): ImageSource | undefined =>
  of === undefined
    ? undefined
    : {
        type: 'clone',
        namespace: of.sourceImageNamespace,
        imageName: of.sourceImageName,
        operation: of.cryptoOperation,
      };

const readRestore = ({ url }: Spec): ImageSource | undefined => {
  const text = textOf(url);
  return text === undefined ? undefined : { type: 'restore', url: text };
};

const readers = {
  download: readDownload,
  upload: (): ImageSource => ({ type: 'upload' }),
  'export-from-volume': readExport,
  clone: readClone,
  restore: readRestore,
} as const satisfies Record<Spec['sourceType'], (spec: Spec) => ImageSource | undefined>;

export const readSource = (spec: Spec): ImageSource | undefined => readers[spec.sourceType](spec);
