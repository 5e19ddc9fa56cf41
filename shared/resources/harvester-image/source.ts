// The source of a Harvester image, by its `sourceType`, and the objects of others that it uses. Missing fields are reported by the rules.
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import { foreignSecretsIn } from '#shared/backends/rules/encryption.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import type { AskedSource, SourcesOf } from '#shared/resources/access-rule.ts';
import type { ImageSource } from '#shared/backends/backend.ts';
import type { SourceAccess } from '#shared/populate/sources/servers.ts';
import { annotatedAccess, readAccess } from '#shared/resources/source-access.ts';

type Spec = HarvesterImage['spec'];

/** Go clients send an empty string for a missing field. */
export const textOf = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

const readDownload = ({ url = '' }: Spec, access: SourceAccess): ImageSource | undefined => {
  const parsed = parseSourceUrl(url);
  return 'value' in parsed ? { type: 'http', url: parsed.value, ...access } : undefined;
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

/** A claim, even in the image's own namespace, as in Harvester. */
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
  /** Type of `spec.url`. Default: it must be empty. The URL of a backup is not an http URL. */
  readonly url?: 'http' | 'backup';
  read(spec: Spec, access: SourceAccess): ImageSource | undefined;
  /** Objects that its author must be allowed to use. */
  usedBy(spec: Spec): readonly AskedSource[];
}

const rows: { readonly [T in Spec['sourceType']]: Row } = {
  download: { url: 'http', read: readDownload, usedBy: nothing },
  upload: { read: () => ({ type: 'upload' }), usedBy: nothing },
  'export-from-volume': { read: readExport, usedBy: usedClaim },
  clone: { read: readClone, usedBy: usedImage },
  restore: { url: 'backup', read: readRestore, usedBy: nothing },
};

export const readSource = (object: HarvesterImage): ImageSource | undefined =>
  rows[object.spec.sourceType].read(object.spec, readAccess(annotatedAccess(object)));

export const urlOf = ({ sourceType }: Spec): Row['url'] => rows[sourceType].url;

export const harvesterImageSources: SourcesOf<HarvesterImage> = ({ metadata, spec }) => [
  ...rows[spec.sourceType].usedBy(spec),
  ...secretsOf(metadata.namespace ?? '', spec),
];

/** Secrets that the storage would read for every volume of the image's class, without a permission check. Without duplicates. */
const secretsOf = (own: string, { storageClassParameters }: Spec): readonly AskedSource[] => {
  const named = foreignSecretsIn(storageClassParameters, own).map(({ key, ...secret }) => ({
    ...secret,
    field: `spec.storageClassParameters[${key}]`,
  }));
  return named.filter(
    ({ namespace, name }, at) => named.findIndex((one) => one.namespace === namespace && one.name === name) === at,
  );
};
