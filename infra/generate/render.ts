// What kustomize makes of our kustomizations, without kustomize: for the released files and the chart. Only what they use; anything else throws. A
// test compares it with kubectl.
import { join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { kustomizeOutputs } from '#infra/generate/kustomize.ts';
import { type GeneratedManifest, functionsImage } from '#infra/generate/manifest.ts';
import { type Outputs, manifestOutputs } from '#infra/generate/outputs.ts';
import { imageNames } from '#infra/generate/wiring.ts';
import type { JsonObject } from '#local-cluster/api-server/schema/json.ts';
import { applyJsonPatch } from '#local-cluster/api-server/patch/json-patch.ts';
import { release } from '#shared/api/names.ts';

interface Patch {
  readonly target: { readonly kind: string; readonly name?: string };
  readonly patch: string;
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly patches?: readonly Patch[];
}

/** A manifest as read from its file. */
type Rendered = GeneratedManifest & JsonObject;

/** An object, or `undefined` if the patch deletes it. */
const patched = (object: Rendered, text: string): Rendered | undefined => {
  const body: unknown = parse(text);
  if (Array.isArray(body)) {
    const outcome = applyJsonPatch(object, body);
    if (outcome.kind !== 'patched')
      throw new Error(`${object.kind} ${object.metadata.name} cannot be patched: ${text}`);
    return outcome.object as Rendered;
  }
  if ((body as { readonly $patch?: string }).$patch === 'delete') return undefined;
  throw new Error(`strategic merge patches are left to kustomize: ${object.kind} ${object.metadata.name}`);
};

const isTarget = ({ kind, name }: Patch['target'], object: Rendered): boolean =>
  object.kind === kind && (name === undefined || new RegExp(`^(?:${name})$`).test(object.metadata.name));

const withPatch = (objects: readonly Rendered[], { target, patch }: Patch): readonly Rendered[] =>
  objects.flatMap((object) => (isTarget(target, object) ? (patched(object, patch) ?? []) : [object]));

/** The objects of a folder with a kustomization. A component gets the objects it changes. */
const renderFolder = (outputs: Outputs, folder: string, before: readonly Rendered[] = []): readonly Rendered[] => {
  const text = outputs[`${folder}/kustomization.yaml`];
  if (text === undefined) throw new Error(`${folder} has no kustomization`);
  const { resources = [], components = [], patches = [] } = parse(text) as Kustomization;
  const read = (resource: string): readonly Rendered[] => {
    const path = join(folder, resource);
    const file = outputs[path];
    if (file === undefined) return renderFolder(outputs, path);
    return parseAllDocuments(file).map((document) => document.toJS() as Rendered);
  };
  const own = [...before, ...resources.flatMap(read)];
  const whole = components.reduce<readonly Rendered[]>(
    (objects, component) => renderFolder(outputs, join(folder, component), objects),
    own,
  );
  return patches.reduce(withPatch, whole);
};

/** Both shapes, each with the components that are for it, by the names that the chart has for them. */
export const shapes = {
  knative: {
    summary: 'on Knative',
    folder: 'infra/base',
    components: { console: 'console', monitoring: 'monitoring', networkPolicies: 'network-policies' },
  },
  single: {
    summary: 'in one process, without Knative',
    folder: 'infra/overlays/single',
    components: {
      console: 'single-console',
      monitoring: 'single-monitoring',
      networkPolicies: 'single-network-policies',
    },
  },
} as const;
export type ShapeName = keyof typeof shapes;
export type ComponentName = keyof (typeof shapes)['single']['components'];
export const componentNames = Object.keys(shapes.single.components) as readonly ComponentName[];

/** In the order in which they can be created; the rest between. */
const early = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount', 'Secret', 'ConfigMap'];
const late = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'];
const rank = ({ kind }: GeneratedManifest): number =>
  early.includes(kind) ? early.indexOf(kind) - early.length : late.includes(kind) ? 1 : 0;

/** The objects of a shape with these components. `before`: those of the shape without any, if they are rendered already. */
export const renderShape = (
  outputs: Outputs,
  shape: ShapeName,
  components: readonly ComponentName[] = [],
  before: readonly Rendered[] = renderFolder(outputs, shapes[shape].folder),
): readonly Rendered[] =>
  components
    .reduce(
      (objects, name) => renderFolder(outputs, `infra/components/${shapes[shape].components[name]}`, objects),
      before,
    )
    .toSorted((a, b) => rank(a) - rank(b));

/** The images that manifests name, functions and Jobs, wherever they are. */
const ourImages = new RegExp(
  `${functionsImage.image.replace(`functions:${release}`, '')}(${imageNames.join('|')}):${release.replaceAll('.', String.raw`\.`)}`,
  'g',
);

export const withImages = (text: string, registry: string, tag: string): string =>
  text.replaceAll(ourImages, (_, name: string) => `${registry}/${name}:${tag}`);

export interface ReleaseOptions {
  /** Of every image, without their names. */
  readonly registry: string;
  readonly tag: string;
}

/** One file with everything that a shape needs, without optional components. */
export const buildRelease = (shape: ShapeName, { registry, tag }: ReleaseOptions): string => {
  const manifests = manifestOutputs();
  const objects = renderShape({ ...manifests, ...kustomizeOutputs(manifests) }, shape);
  const text = objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n');
  return `# Bullion ${release}, ${shapes[shape].summary}\n${withImages(text, registry, tag)}`;
};
