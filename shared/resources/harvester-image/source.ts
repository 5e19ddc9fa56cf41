// Where a Harvester image comes from, by its `sourceType`, and what of others it uses for that. What is missing here is a fault of the rules.
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import { foreignSecretsIn } from '#shared/backends/rules/encryption.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import type { AskedSource, SourcesOf } from '#shared/resources/access-rule.ts';
import type { ImageSource } from '#shared/backends/image.ts';

type Spec = HarvesterImage['spec'];

/** An empty string is what clients in Go send for a field that is not set. */
export const textOf = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

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

/** A claim, also within the image's namespace, as the original asks. */
const usedClaim = ({ pvcName: name = '', pvcNamespace: namespace = '' }: Spec): readonly AskedSource[] =>
  name === '' || namespace === '' ? [] : [{ use: 'export-claim', namespace, name, field: 'spec.pvcName' }];

const usedImage = ({ securityParameters: of }: Spec): readonly AskedSource[] =>
  of === undefined
    ? []
    : [
        {
          use: 'use-image',
          namespace: of.sourceImageNamespace,
          name: of.sourceImageName,
          field: 'spec.securityParameters.sourceImageName',
        },
      ];

const nothing = (): readonly AskedSource[] => [];

interface Row {
  /** What `spec.url` is; left out: it must be empty. A backup's address is no http URL. */
  readonly url?: 'http' | 'backup';
  read(spec: Spec): ImageSource | undefined;
  /** What its author must be allowed to use. */
  usedBy(spec: Spec): readonly AskedSource[];
}

const rows: { readonly [T in Spec['sourceType']]: Row } = {
  download: { url: 'http', read: readDownload, usedBy: nothing },
  upload: { read: () => ({ type: 'upload' }), usedBy: nothing },
  'export-from-volume': { read: readExport, usedBy: usedClaim },
  clone: { read: readClone, usedBy: usedImage },
  restore: { url: 'backup', read: readRestore, usedBy: nothing },
};

export const readSource = (spec: Spec): ImageSource | undefined => rows[spec.sourceType].read(spec);

export const urlOf = ({ sourceType }: Spec): Row['url'] => rows[sourceType].url;

export const harvesterImageSources: SourcesOf<HarvesterImage> = ({ metadata, spec }) => [
  ...rows[spec.sourceType].usedBy(spec),
  ...secretsOf(metadata.namespace ?? '', spec),
];

/** What the storage would read for every volume of the image's class, whoever is allowed to read it. Each once. */
const secretsOf = (own: string, { storageClassParameters }: Spec): readonly AskedSource[] => {
  const named = foreignSecretsIn(storageClassParameters, own).map(({ key, ...secret }) => ({
    ...secret,
    field: `spec.storageClassParameters[${key}]`,
  }));
  return named.filter(
    ({ namespace, name }, at) => named.findIndex((one) => one.namespace === namespace && one.name === name) === at,
  );
};
