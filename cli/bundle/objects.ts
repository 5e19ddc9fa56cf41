// The objects of a bundle on the other side: crons follow the registry that the images were brought into, and policies stay what they were. Pure, but for
// the last function.
import { type BundleDocument, type BundledObject, refusal } from '#cli/bundle/layout.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import type { CronSourceSpec, DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readReference } from '#shared/clients/registry/reference.ts';
import { Conflict, isConflict } from '#shared/runtime/errors.ts';
import { isDeepStrictEqual } from 'node:util';

export interface CronPlace {
  /** Of the images, `docker://host/prefix`. */
  readonly registry: string;
  readonly namespace: string;
  readonly secretRef?: string | undefined;
  readonly certConfigMap?: string | undefined;
}

type PlainObject = KubeObject & { readonly spec: object };

const repositoryOf = (
  { images }: BundleDocument,
  policy: BundledObject | undefined,
  cron: DataImportCronSpec,
): string => {
  const wanted = policy?.metadata.name ?? cron.managedDataSource;
  const image = images.find((one) => one.version !== undefined && (one.policy ?? one.name) === wanted);
  if (image === undefined) throw refusal(`the bundle has no image for the cron of ${cron.managedDataSource}`);
  return image.name;
};

const policyOf = ({ objects }: BundleDocument, cron: BundledObject): BundledObject | undefined =>
  objects.find(({ kind, spec }) => {
    const crons = (spec['dataImportCrons'] ?? {}) as { names?: string[]; matchLabels?: Record<string, string> };
    const labels = cron.metadata.labels ?? {};
    const wanted = Object.entries(crons.matchLabels ?? {});
    const isLabelled = wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
    return kind === 'GoldenImagePolicy' && (crons.names?.includes(cron.metadata.name) === true || isLabelled);
  });

const metadataOf = ({ metadata: { name, labels } }: BundledObject, { namespace }: CronPlace) =>
  labels === undefined ? { name, namespace } : { name, namespace, labels };

const defined = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** The same tag or range as before, at another place. */
const sourceFor = (before: CronSourceSpec['registry'], repository: string, place: CronPlace) => {
  const { url = '', tags, platform } = before ?? {};
  const read = readReference(url);
  const tag = 'value' in read && read.value.digest === undefined ? read.value.tag : undefined;
  const { secretRef, certConfigMap } = place;
  const image = `${place.registry.replace(/\/+$/, '')}/${repository}`;
  const named = tag === undefined ? image : `${image}:${tag}`;
  return { registry: defined({ url: named, tags, platform, secretRef, certConfigMap }) };
};

const cronFor = (document: BundleDocument, cron: BundledObject, place: CronPlace): PlainObject => {
  const { success, data } = dataImportCronKind.spec.safeParse(cron.spec);
  if (!success) throw refusal(`the bundle has a dataimportcron ${cron.metadata.name} that is not valid`);
  const parsed = data as DataImportCronSpec;
  const repository = repositoryOf(document, policyOf(document, cron), parsed);
  const metadata = metadataOf(cron, place);
  const { template } = parsed;
  if (template === undefined) {
    const source = sourceFor(parsed.source?.registry, repository, place);
    return { ...cron, metadata, spec: { ...parsed, source } };
  }
  const source = sourceFor(template.spec.source?.registry, repository, place);
  return { ...cron, metadata, spec: { ...parsed, template: { ...template, spec: { ...template.spec, source } } } };
};

/** DataSources are made by their crons and policies. */
export const objectsFor = (document: BundleDocument, place: CronPlace): readonly PlainObject[] =>
  document.objects.flatMap((object): readonly PlainObject[] => {
    if (object.kind === 'DataSource') return [];
    if (object.kind === 'DataImportCron') return [cronFor(document, object, place)];
    return [{ ...object, metadata: metadataOf(object, place) }];
  });

const types: Readonly<Record<string, ResourceType>> = {
  DataImportCron: dataImportCronKind.type,
  GoldenImagePolicy: goldenImagePolicyKind.type,
};

interface AnyCron extends KubeObject {
  readonly spec?: { readonly source?: unknown; readonly template?: { readonly spec?: { readonly source?: unknown } } };
}

const sourceOf = ({ spec }: AnyCron): unknown => spec?.source ?? spec?.template?.spec?.source;

/** Whether it was made. One that is there is never changed: a policy has decisions of this side, and a cron cannot be. */
export const applyObject = async (kube: KubeClient, object: PlainObject): Promise<boolean> => {
  const type: ResourceType<AnyCron> | undefined = types[object.kind];
  if (type === undefined) throw refusal(`${object.kind} is not brought into clusters`);
  const { namespace, name } = object.metadata;
  try {
    await kube.create(type, object);
    return true;
  } catch (error) {
    if (!isConflict(error)) throw error;
    const found = await kube.get(type, { namespace, name });
    const isSame = found !== undefined && isDeepStrictEqual(sourceOf(found), sourceOf(object));
    if (object.kind === 'GoldenImagePolicy' || isSame) return false;
    throw new Conflict(
      `dataimportcron ${name} is there and follows another source: delete it (its versions stay), then load again`,
      { cause: error },
    );
  }
};
