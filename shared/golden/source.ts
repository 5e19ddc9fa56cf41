// The source a DataImportCron follows, whichever shape it was written in. Pure; called by admission, polls and plans.
import type { CronSourceSpec, DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import { type Reference, formatReference, readReference } from '#shared/clients/registry/reference.ts';
import { noS3Object, s3PlaceOf } from '#shared/clients/s3/place.ts';
import { isTagRange } from '#shared/clients/registry/tags.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Names of objects in the cron's namespace. */
interface Access {
  readonly secretName?: string | undefined;
  readonly caName?: string | undefined;
}

export interface RegistryCronSource extends Access {
  readonly type: 'registry';
  readonly image: Reference;
  /** Range of versions; left out: the tag of `image`. */
  readonly tags?: string | undefined;
  readonly architecture?: string | undefined;
}

export interface HttpCronSource extends Access {
  readonly type: 'http';
  readonly url: string;
  readonly checksumUrl?: string | undefined;
}

export interface S3CronSource extends Access {
  readonly type: 's3';
  readonly url: string;
}

export interface VolumeCronSource {
  readonly type: 'pvc';
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Service account of the cron's namespace that must be allowed to clone a volume of another one. */
  readonly account: string;
}

export type CronSource = RegistryCronSource | HttpCronSource | S3CronSource | VolumeCronSource;

export type ReadSource = { readonly value: CronSource } | { readonly faults: readonly Fault[] };

const followed = ['registry', 'http', 's3', 'pvc'] as const;

/** The short shape's field, or the template's. */
export const sourceFieldOf = ({ source }: DataImportCronSpec): string =>
  source === undefined ? 'spec.template.spec.source' : 'spec.source';

const fault = (field: string, message: string): ReadSource => ({ faults: [{ field, message }] });

export const readCronSource = (spec: DataImportCronSpec): ReadSource => {
  const field = sourceFieldOf(spec);
  const source = spec.source ?? spec.template?.spec.source ?? {};
  const set = Object.entries(source)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name]) => name);
  const [only] = followed.filter((name) => set.includes(name));
  if (set.length === 0 || only === undefined)
    return fault(field, `Missing source: must have one of ${followed.join(', ')}`);
  if (set.length > 1) return fault(field, `must have one source, and has ${set.join(', ')}`);
  const read = readers[only](source, `${field}.${only}`, spec.source !== undefined);
  return 'value' in read && read.value.type === 'pvc'
    ? { value: { ...read.value, account: spec.serviceAccountName ?? defaultAccount } }
    : read;
};

/** The one that every namespace has. */
const defaultAccount = 'default';

type Reader = (source: CronSourceSpec, field: string, isShort: boolean) => ReadSource;

const readRegistry: Reader = ({ registry = {} }, field, isShort) => {
  const { url = '', tags, imageStream, secretRef, certConfigMap, platform } = registry;
  if (imageStream !== undefined) {
    return fault(`${field}.imageStream`, 'is not served: image streams exist on OpenShift alone; write url');
  }
  const parsed = readReference(url);
  if ('problem' in parsed) return fault(`${field}.url`, parsed.problem);
  const image = parsed.value;
  const isOpen = image.tag === undefined && image.digest === undefined;
  const problem = tags === undefined ? undefined : rangeProblem(tags, isOpen);
  if (problem !== undefined) return fault(`${field}.tags`, problem);
  const access = { architecture: platform?.architecture, secretName: secretRef, caName: certConfigMap };
  return { value: { type: 'registry', image, tags: tags ?? (isShort && isOpen ? anyVersion : undefined), ...access } };
};

const rangeProblem = (tags: string, isOpen: boolean): string | undefined => {
  if (!isTagRange(tags)) return 'is not a valid range of versions; write one such as ">=39 <41"';
  return isOpen ? undefined : 'cannot stand beside a tag or digest in url';
};

/** In the short shape a repository without a tag means its newest version. Where no tag is a version, `latest` is meant. */
export const anyVersion = '*';

const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

const readHttp: Reader = ({ http }, field) => {
  const { url = '', checksumURL, secretRef, certConfigMap } = http ?? {};
  if (!isHttp(url)) return fault(`${field}.url`, 'must be an http or https URL');
  if (checksumURL !== undefined && !isHttp(checksumURL))
    return fault(`${field}.checksumURL`, 'must be an http or https URL');
  return { value: { type: 'http', url, checksumUrl: checksumURL, secretName: secretRef, caName: certConfigMap } };
};

const readS3: Reader = ({ s3 }, field) => {
  const { url = '', secretRef, certConfigMap } = s3 ?? {};
  if (!isHttp(url)) return fault(`${field}.url`, 'must be an http or https URL');
  if (s3PlaceOf(new URL(url)) === undefined) return fault(`${field}.url`, noS3Object);
  return { value: { type: 's3', url, secretName: secretRef, caName: certConfigMap } };
};

const readVolume: Reader = ({ pvc }, field) => {
  if (pvc === undefined || pvc.name === '') return fault(`${field}.name`, 'must name a volume');
  return { value: { type: 'pvc', namespace: pvc.namespace, name: pvc.name, account: defaultAccount } };
};

const readers: Readonly<Record<(typeof followed)[number], Reader>> = {
  registry: readRegistry,
  http: readHttp,
  s3: readS3,
  pvc: readVolume,
};

/** What is asked, without secrets: crons that ask the same with the same access share one answer. */
export const sourceName = (source: CronSource): string => {
  switch (source.type) {
    case 'registry':
      return [formatReference(source.image), source.tags, source.architecture]
        .filter((part) => part !== undefined)
        .join(' ');
    case 'http':
      return [source.url, source.checksumUrl].filter((part) => part !== undefined).join(' ');
    case 's3':
      return source.url;
    case 'pvc':
      return `${source.namespace ?? ''}/${source.name}`;
  }
};

/** `host[:port]` that is asked; `undefined` where nobody is, outside of the cluster. */
export const hostOf = (source: CronSource): string | undefined => {
  switch (source.type) {
    case 'registry':
      return source.image.host;
    case 'http':
      return new URL(source.checksumUrl ?? source.url).host;
    case 's3':
      return new URL(source.url).host;
    case 'pvc':
      return undefined;
  }
};

/** Why a volume of another namespace is not cloned, and what to do. */
export const notAuthorized = (own: string, account: string, namespace: string): string =>
  `service account ${own}/${account} may not clone from namespace ${namespace}: give it the right to create datavolumes/source of cdi.kubevirt.io there, or name another one in serviceAccountName`;
