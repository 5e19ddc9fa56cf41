// Knative's own manifests, as they are in its Go modules, with the images of the node. Called by install.ts.
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type KnativePrograms, imageOf, isBuilt } from '#local-cluster/node/knative/programs.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** Folders and files of each module. Those of `networking` and `caching` are links in Serving's repository, which no Go module has. */
const places = {
  serving: [
    ['knative.dev/serving', 'config/core/**/*.yaml'],
    ['knative.dev/networking', 'config/*.yaml'],
    ['knative.dev/caching', 'config/*.yaml'],
  ],
  eventing: [
    ['knative.dev/eventing', 'config/core/**/*.yaml'],
    ['knative.dev/eventing', 'config/brokers/mt-channel-broker/**/*.yaml'],
    ['knative.dev/eventing', 'config/channels/in-memory-channel/**/*.yaml'],
  ],
} as const;

export type Part = keyof typeof places;

/** Objects in the order in which they are applied. */
export interface Manifests {
  readonly namespaces: readonly KubeObject[];
  readonly definitions: readonly KubeObject[];
  readonly objects: readonly KubeObject[];
  /** Reject everything until the programs answer. */
  readonly webhooks: readonly KubeObject[];
}

/** Data of ConfigMaps of Knative, beside what its manifests have. */
export type Settings = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const readKnative = async (
  part: Part,
  { folders }: Pick<KnativePrograms, 'folders'>,
  settings: Settings,
): Promise<Manifests> => {
  const texts: string[] = [];
  for (const [module, pattern] of places[part])
    for (const file of globSync(pattern, { cwd: folders[module] }).toSorted())
      texts.push(await readFile(join(folders[module], file), 'utf8'));
  return arrange(texts.flatMap(parseManifest), settings);
};

const parseManifest = (text: string): readonly KubeObject[] =>
  parseAllDocuments(text).flatMap((document) => {
    const object = document.toJS() as KubeObject | null;
    return object === null ? [] : [object];
  });

interface Variable {
  readonly name: string;
  readonly valueFrom?: { readonly configMapKeyRef?: object };
}

interface Container {
  readonly image: string;
  readonly env?: readonly Variable[];
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> };
}

interface Workload extends KubeObject {
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly Container[] } } };
}

const isWorkload = (object: KubeObject): object is Workload => ['Deployment', 'StatefulSet'].includes(object.kind);
const scheme = 'ko://';
const packageOf = (image: string): string => image.slice(scheme.length);

/** Pure: what is not for the node is left out, images are named, settings added. */
export const arrange = (found: readonly KubeObject[], settings: Settings): Manifests => {
  const isForNode = (object: KubeObject): boolean =>
    // Nothing measures pods for an autoscaler of Kubernetes.
    object.kind !== 'HorizontalPodAutoscaler' &&
    (!isWorkload(object) || object.spec.template.spec.containers.every(({ image }) => isBuilt(packageOf(image))));
  const all = found.filter(isForNode).map((object) => withSettings(withImages(fitting(object)), settings));
  const of = (matches: (kind: string) => boolean): readonly KubeObject[] => all.filter(({ kind }) => matches(kind));
  const isFirst = (kind: string): boolean => kind === 'Namespace' || kind === 'CustomResourceDefinition';
  const isLast = (kind: string): boolean => kind.endsWith('WebhookConfiguration');
  return {
    namespaces: of((kind) => kind === 'Namespace'),
    definitions: of((kind) => kind === 'CustomResourceDefinition'),
    objects: of((kind) => !isFirst(kind) && !isLast(kind)),
    webhooks: of(isLast),
  };
};

/**
 * Two cores are less than all of Knative asks for: only what tested pods ask for is reserved. ConfigMaps with images of event transforms and integrations are
 * released beside these manifests, and are not here.
 */
const fitting = (object: KubeObject): KubeObject => {
  if (!isWorkload(object)) return object;
  const { template } = object.spec;
  const containers = template.spec.containers.map(({ resources, env = [], ...rest }) => {
    const { cpu: _cpu, ...requests } = resources?.requests ?? {};
    return { ...rest, env: env.map(optional), resources: { requests } };
  });
  const pod = { ...template, spec: { ...template.spec, containers } };
  return { ...object, spec: { ...object.spec, template: pod } } as Workload;
};

const optional = (variable: Variable): Variable => {
  const configMapKeyRef = variable.valueFrom?.configMapKeyRef;
  if (configMapKeyRef === undefined) return variable;
  return { ...variable, valueFrom: { configMapKeyRef: { ...configMapKeyRef, optional: true } } };
};

/** Also in variables and ConfigMaps. */
const withImages = (object: KubeObject): KubeObject =>
  JSON.parse(
    JSON.stringify(object).replaceAll(/ko:\/\/([^"]+)/g, (_, source: string) => imageOf(source)),
  ) as KubeObject;

const withSettings = (object: KubeObject & { readonly data?: object }, settings: Settings): KubeObject => {
  const more = object.kind === 'ConfigMap' ? settings[object.metadata.name] : undefined;
  return more === undefined ? object : ({ ...object, data: { ...object.data, ...more } } as KubeObject);
};
