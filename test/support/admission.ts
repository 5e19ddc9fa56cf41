// Builders for admission tests: a review of the API server, its response, and a cluster with a few objects.
import type { Hono } from 'hono';
import type { AdmissionResponse } from '#shared/api/admission.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { type SubjectAccessReview, subjectAccessReviews } from '#shared/api/foreign/kubernetes.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';

export type Loose = Record<string, unknown>;

/** An object as written in a test; types are up to the API. */
export interface Draft {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Loose;
  readonly spec?: Loose;
  readonly status?: Loose;
  /** Of a StorageClass. */
  readonly provisioner?: string;
  readonly parameters?: Loose;
  /** Of a Secret. */
  readonly data?: Loose;
}

export const aHyperCloudImage = (spec: Loose = {}, metadata: Loose = {}): Draft => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  metadata: { name: 'ubuntu', namespace: 'default', uid: 'uid-1', ...metadata },
  spec: { source: { http: 'https://images.example/ubuntu.img' }, ...spec },
});

export const aHarvesterImage = (spec: Loose = {}, metadata: Loose = {}): Draft => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  metadata: { name: 'image-a', namespace: 'default', uid: 'uid-2', ...metadata },
  spec: {
    backend: 'csi',
    displayName: 'leap',
    sourceType: 'download',
    url: 'https://images.example/leap.qcow2',
    retry: 3,
    ...spec,
  },
});

const plurals: Readonly<Record<string, string>> = {
  VirtualMachineVolumeExport: 'virtualmachinevolumeexports',
  DataSource: 'datasources',
  DataImportCron: 'dataimportcrons',
  GoldenImagePolicy: 'goldenimagepolicies',
  StorageProfile: 'storageprofiles',
  TenantLimit: 'tenantlimits',
  VirtualMachineImage: 'virtualmachineimages',
  VirtualMachinePvc: 'virtualmachinepvcs',
  VirtualMachineVolume: 'virtualmachinevolumes',
  DataVolume: 'datavolumes',
  PersistentVolumeClaim: 'persistentvolumeclaims',
  VolumeSnapshot: 'volumesnapshots',
  StorageClass: 'storageclasses',
  VirtualMachine: 'virtualmachines',
};

export interface Asked {
  readonly object?: Draft;
  readonly oldObject?: Draft;
  readonly username?: string;
  readonly groups?: readonly string[];
  readonly subResource?: string;
}

/** The operation follows from the given objects. */
export const aReview = ({
  object,
  oldObject,
  username = 'jane',
  groups = ['system:authenticated'],
  subResource,
}: Asked): object => {
  const subject = object ?? oldObject;
  const [group, version] = subject!.apiVersion.includes('/') ? subject!.apiVersion.split('/') : ['', 'v1'];
  const before = oldObject === undefined ? 'CREATE' : 'UPDATE';
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'review-1',
      kind: { group, version, kind: subject!.kind },
      resource: { group, version, resource: plurals[subject!.kind] ?? `${subject!.kind.toLowerCase()}s` },
      name: subject!.metadata['name'],
      namespace: subject!.metadata['namespace'],
      operation: object === undefined ? 'DELETE' : before,
      userInfo: { username, groups },
      object: object ?? null,
      oldObject: oldObject ?? null,
      dryRun: false,
      ...(subResource === undefined ? {} : { subResource }),
    },
  };
};

/** The response of an admission function; throws unless the status is HTTP 200. */
export const ask = async (app: Hono, path: string, asked: Asked): Promise<AdmissionResponse> => {
  const response = await app.request(path, { method: 'POST', body: JSON.stringify(aReview(asked)) });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { response: AdmissionResponse }).response;
};

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** The object with the patch of a response. Mutation patches only fields, no list items. */
export const patched = (object: Draft, { patch }: AdmissionResponse): Draft => {
  const result = structuredClone(object) as unknown as Loose;
  const operations = patch === undefined ? [] : (JSON.parse(Buffer.from(patch, 'base64').toString()) as Operation[]);
  for (const { op, path, value } of operations) {
    const steps = path
      .slice(1)
      .split('/')
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop()!;
    const parent = steps.reduce<Loose>((node, step) => node[step] as Loose, result);
    if (!['add', 'replace', 'remove'].includes(op) || parent === undefined) throw new Error(`cannot ${op} ${path}`);
    if (op === 'remove') delete parent[last];
    else parent[last] = value;
  }
  return result as unknown as Draft;
};

const matches = (object: Draft, selector: string | undefined): boolean => {
  if (selector === undefined) return true;
  const [key = '', value] = selector.split('=');
  const found = (object.metadata['labels'] as Loose | undefined)?.[key];
  return value === undefined ? found !== undefined : found === value;
};

/** A read-only cluster with these objects, with paging and label selectors. */
export const clusterOf = (...objects: readonly Draft[]): KubeClient => {
  const ofType = (type: ResourceType): readonly Draft[] =>
    objects.filter((object) => object.kind === type.kind && object.apiVersion === apiVersionOf(type));
  const selected = (type: ResourceType, { namespace, labelSelector }: ListOptions): readonly Draft[] =>
    ofType(type).filter(
      (object) =>
        (namespace === undefined || object.metadata['namespace'] === namespace) && matches(object, labelSelector),
    );
  const refuse = (): never => {
    throw new Error('admission has no side effects');
  };
  const typed = <T extends KubeObject>(drafts: readonly Draft[]): T[] => drafts as unknown as T[];
  return {
    server: 'https://cluster.example',
    get: async <T extends KubeObject>(type: ResourceType<T>, key: { name: string; namespace?: string | undefined }) =>
      typed<T>(
        ofType(type).filter(({ metadata }) => metadata['name'] === key.name && metadata['namespace'] === key.namespace),
      )[0],
    list: async (type, options = {}) => {
      if (options.limit === undefined) throw new Error('an unbounded list');
      return { metadata: { resourceVersion: '1' }, items: typed(selected(type, options)) };
    },
    listAll: async function* <T extends KubeObject>(type: ResourceType<T>, options: ListOptions = {}) {
      yield* typed<T>(selected(type as ResourceType, options));
    },
    create: refuse,
    replace: refuse,
    mergePatch: refuse,
    jsonPatch: refuse,
    apply: refuse,
    delete: refuse,
    watch: refuse,
    logs: refuse,
    raw: refuse,
  };
};

export type AccessQuestion = SubjectAccessReview['spec'];

/** The cluster with answers to access reviews; all requests are recorded. */
export const withAccess = (
  kube: KubeClient,
  mayDo: (question: AccessQuestion) => boolean,
): KubeClient & { readonly questions: readonly AccessQuestion[] } => {
  const questions: AccessQuestion[] = [];
  return {
    ...kube,
    questions,
    create: async (type, object, options) => {
      if ((type.plural as string) !== subjectAccessReviews.plural) return kube.create(type, object, options);
      const { spec } = object as unknown as SubjectAccessReview;
      questions.push(spec);
      return { ...object, status: { allowed: mayDo(spec) } };
    },
  };
};

/** The permission in short: `verb resource[/subresource] namespace/name`. */
export const rightOf = ({ resourceAttributes: asked }: AccessQuestion): string =>
  `${asked.verb} ${asked.resource}${asked.subresource === undefined ? '' : `/${asked.subresource}`} ${asked.namespace ?? ''}/${asked.name ?? '*'}`;
