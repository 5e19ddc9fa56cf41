// Creates the objects of a row in a cluster, in a separate namespace, so that many rows share one cluster.
import type { Asked, Draft } from '#test/support/admission.ts';
import { discover } from '#local-cluster/controllers/discovery.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';

/** Existing objects, and the request. */
export interface Scene {
  readonly given: readonly Draft[];
  readonly asked: Asked;
}

type Rename = <T>(value: T) => T;

const clusterScoped = ['StorageClass', 'PersistentVolume'];

/** Namespaces `default` and `tenant` and cluster-scoped objects are renamed per scene; UIDs are those of the server. */
const renameIn = (scene: Scene, namespace: string, uids: ReadonlyMap<string, string>): Rename => {
  const { object, oldObject } = scene.asked;
  const drafts = [...scene.given, object, oldObject].filter((draft) => draft !== undefined);
  const shared = drafts
    .filter(({ kind }) => clusterScoped.includes(kind))
    .map(({ metadata }) => String(metadata['name']));
  const names = new Map([
    ['default', namespace],
    ...['tenant', ...shared].map((name) => [name, `${name}-${namespace}`] as const),
    ...uids,
  ]);
  const renameText = (text: string): string => {
    const name = names.get(text);
    if (name !== undefined) return name;
    if (!/^[[{]/.test(text)) return text.replace(/^default\//, `${namespace}/`);
    try {
      return JSON.stringify(renameAll(JSON.parse(text)));
    } catch {
      return text;
    }
  };
  const renameAll = (value: unknown): unknown => {
    if (typeof value === 'string') return renameText(value);
    if (Array.isArray(value)) return value.map(renameAll);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, renameAll(one)]));
  };
  return (value) => renameAll(value) as typeof value;
};

const heldBy = 'rows.bullion.dev/held';

const typeOf = (types: readonly ResourceType[], { apiVersion, kind }: Draft): ResourceType => {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const type = types.find((one) => one.group === group && one.version === version && one.kind === kind);
  if (type === undefined) throw new Error(`${apiVersion} ${kind} is not served`);
  return type;
};

export interface Stage {
  /** Creates the objects of the scene, and returns the request to send. */
  readonly set: <T>(scene: Scene, namespace: string, also?: T) => Promise<Asked & { readonly also: T }>;
}

export const createStage = async (kube: KubeClient): Promise<Stage> => {
  const { types } = await discover(kube);

  const make = async (draft: Draft): Promise<string> => {
    const { uid: _uid, deletionTimestamp, ...metadata } = draft.metadata;
    const { status, ...rest } = draft;
    const type = typeOf(types, draft);
    const isGoing = deletionTimestamp !== undefined;
    const provisioner = draft.kind === 'StorageClass' ? { provisioner: 'rows.example' } : {};
    const object = {
      ...provisioner,
      ...rest,
      metadata: { ...metadata, ...(isGoing ? { finalizers: [heldBy] } : {}) },
    } as unknown as KubeObject;
    const key = { name: String(metadata['name']), namespace: metadata['namespace'] as string | undefined };
    const made = await kube.create(type, object).catch(async (error: unknown) => {
      // Namespaces that rows share are the same for all of them.
      if (!isConflict(error)) throw error;
      return (await kube.get(type, key))!;
    });
    if (status !== undefined) await kube.mergePatch(type, key, { status }, { subresource: 'status' });
    if (isGoing) await kube.delete(type, key);
    return made.metadata.uid ?? '';
  };

  const ensureNamespace = async (name: string): Promise<void> => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await kube.create(namespaces, namespace).catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    });
  };

  return {
    set: async (scene, namespace, also) => {
      const { given, asked } = scene;
      const uids = new Map<string, string>();
      const rename: Rename = (value) => renameIn(scene, namespace, uids)(value);
      await ensureNamespace(namespace);
      const isFirst = ({ metadata }: Draft): boolean => metadata['uid'] !== undefined;
      // Referenced objects come first, because their UIDs are needed. The old object may be one that could not be created any more.
      const before = asked.oldObject === undefined ? [] : [asked.oldObject];
      for (const draft of [...given.filter(isFirst), ...before, ...given.filter((one) => !isFirst(one))]) {
        const own = rename(draft);
        if (typeof own.metadata['namespace'] === 'string') await ensureNamespace(own.metadata['namespace']);
        const uid = await make(own);
        if (isFirst(draft)) uids.set(String(draft.metadata['uid']), uid);
      }
      const place = asked.object && rename(asked.object).metadata['namespace'];
      if (typeof place === 'string') await ensureNamespace(place);
      const plain = (draft: Draft | undefined): Draft | undefined => {
        if (draft === undefined) return undefined;
        const { metadata, ...rest } = rename(draft);
        const { uid: _uid, ...named } = metadata;
        return { ...rest, metadata: named };
      };
      return { ...asked, object: plain(asked.object), oldObject: plain(asked.oldObject), also: rename(also) } as never;
    },
  };
};

const groups: Readonly<Record<string, string>> = {
  persistentvolumeclaims: '',
  virtualmachineimages: 'harvesterhci.io',
  datavolumes: 'cdi.kubevirt.io',
  goldenimagepolicies: 'bullion.dev',
  jobs: 'batch',
  virtualmachineinstances: 'kubevirt.io',
};

/** Allows the user to create the objects of rows in all namespaces, and grants the permissions of rows, written as `verb resource[/subresource] namespace/*`. */
export const grantRights = async (kube: KubeClient, user: string, rights: readonly string[]): Promise<void> => {
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1' } as const;
  const subjects = [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }];
  const refer = (kind: string, name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });
  const made = [
    'persistentvolumeclaims',
    'virtualmachineimages',
    'virtualmachines',
    'datavolumes',
    'datasources',
    'goldenimagepolicies',
  ];
  const inOne = rights.filter((right) => !right.includes(' /'));
  const named = [...new Set(inOne)].map((right, index) => {
    const [, verb = '', resource = '', namespace = ''] = /^(\S+) (\S+) ([^/]*)\//.exec(right) ?? [];
    return { name: `${user}-${index}`, verb, resource, namespace };
  });
  await applyObjects(kube, [
    {
      ...role,
      kind: 'ClusterRole',
      metadata: { name: user },
      rules: [
        {
          apiGroups: ['', 'harvesterhci.io', 'kubevirt.io', 'cdi.kubevirt.io', 'bullion.dev'],
          resources: made,
          verbs: ['create', 'update'],
        },
      ],
    },
    { ...role, kind: 'ClusterRoleBinding', metadata: { name: user }, roleRef: refer('ClusterRole', user), subjects },
    ...named.flatMap(({ namespace }) => [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }]),
    ...named.flatMap(({ name, verb, resource, namespace }) => [
      {
        ...role,
        kind: 'Role',
        metadata: { name, namespace },
        rules: [{ apiGroups: [groups[resource.split('/')[0] ?? ''] ?? ''], resources: [resource], verbs: [verb] }],
      },
      { ...role, kind: 'RoleBinding', metadata: { name, namespace }, roleRef: refer('Role', name), subjects },
    ]),
  ] as unknown as readonly KubeObject[]);
};
