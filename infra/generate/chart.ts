// The Helm chart under infra/chart: both shapes as kustomize renders them, with a few values in place of texts. Called by main.ts.
import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { type GeneratedManifest, banner, settingsConfig } from '#infra/generate/manifest.ts';
import type { Outputs } from '#infra/generate/outputs.ts';
import {
  type ComponentName,
  type ShapeName,
  componentNames,
  renderShape,
  shapes,
  withImages,
} from '#infra/generate/render.ts';
import { release, systemNamespace } from '#shared/api/names.ts';

const source = 'infra/generate/chart.ts';
const chartDir = 'infra/chart';
const shapeNames = Object.keys(shapes) as readonly ShapeName[];

// Texts that are replaced once the YAML is written: templates are no YAML.

const replicasMark = (count: unknown): string => `@replicas ${String(count)}@`;
const settingsMark = { only: '@settings only@', also: '@settings also@' } as const;
const settingsSum = 'checksum/settings';

interface Workload extends GeneratedManifest {
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly metadata: { readonly annotations?: object } };
  };
}

const isWorkload = (object: GeneratedManifest): object is Workload =>
  object.kind === 'Deployment' || object.apiVersion.startsWith('serving.knative.dev/');

/** The Deployments that answer admission, of which there may be several. */
const isScaled = ({ kind, metadata: { name } }: GeneratedManifest): boolean =>
  kind === 'Deployment' && ['admission', 'bullion'].includes(name);

/** New settings start new pods: the environment of running ones does not change. */
const withMarks = (object: GeneratedManifest): GeneratedManifest => {
  if (object.kind === 'CustomResourceDefinition') return withKeep(object);
  if (!isWorkload(object)) return object;
  const { template } = object.spec;
  const before = template.metadata.annotations;
  const mark = before === undefined ? settingsMark.only : settingsMark.also;
  const metadata = { ...template.metadata, annotations: { [settingsSum]: mark, ...before } };
  const replicas = isScaled(object) ? { replicas: replicasMark(object.spec.replicas) } : {};
  return { ...object, spec: { ...object.spec, ...replicas, template: { ...template, metadata } } };
};

/** An uninstall must not delete every image of the cluster with its kind. */
const withKeep = (object: GeneratedManifest): GeneratedManifest => ({
  ...object,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, 'helm.sh/resource-policy': 'keep' } },
});

const sum = 'toJson .Values.settings | sha256sum';

const toTemplate = (object: GeneratedManifest): string => {
  const text = stringify(withMarks(object), { lineWidth: 0, aliasDuplicateObjects: false })
    // What looks like a template is text of ours: alerts and dashboards have their own.
    .replaceAll(/\{\{|\}\}/g, (braces) => `{{ "${braces}" }}`);
  return withImages(text, '{{ .Values.registry }}', '{{ .Values.tag }}')
    .replace(/"?@replicas (\d+)@"?/, '{{ .Values.replicas | default $1 }}')
    .replace(
      /^( *)annotations:\n( *)checksum\/settings: "@settings only@"\n/m,
      `{{- if .Values.settings }}\n$1annotations:\n$2${settingsSum}: {{ ${sum} }}\n{{- end }}\n`,
    )
    .replace(
      /^( *)checksum\/settings: "@settings also@"\n/m,
      `{{- if .Values.settings }}\n$1${settingsSum}: {{ ${sum} }}\n{{- end }}\n`,
    );
};

const documents = (texts: readonly string[]): string => texts.map((text) => `---\n${text}`).join('');
const when = (condition: string, then: string, otherwise?: string): string =>
  `{{- if ${condition} }}\n${then}${otherwise === undefined ? '' : `{{- else }}\n${otherwise}`}{{- end }}\n`;

const keyOf = ({ apiVersion, kind, metadata: { name, namespace = '' } }: GeneratedManifest): string =>
  `${apiVersion} ${kind} ${namespace}/${name}`;
const withComponent = (name: ComponentName): string => `.Values.components.${name}`;

interface Component {
  readonly name: ComponentName;
  readonly added: readonly GeneratedManifest[];
  readonly changed: readonly GeneratedManifest[];
}

/** A shape without components, and what each of them adds and changes. */
const readShape = (outputs: Outputs, shape: ShapeName) => {
  const objects = renderShape(outputs, shape);
  const before = new Map(objects.map((object) => [keyOf(object), object]));
  const isKnown = (object: GeneratedManifest): boolean => before.has(keyOf(object));
  const components = componentNames.map((name): Component => {
    const after = renderShape(outputs, shape, [name], objects);
    return {
      name,
      added: after.filter((object) => !isKnown(object)),
      changed: after.filter((object) => isKnown(object) && !isDeepStrictEqual(before.get(keyOf(object)), object)),
    };
  });
  return { objects, components };
};

const shapeTemplate = (
  shape: ShapeName,
  objects: readonly GeneratedManifest[],
  components: readonly Component[],
): string => {
  const texts = objects.map((object) => {
    const found = components.flatMap(({ name, changed }) =>
      changed.filter((one) => keyOf(one) === keyOf(object)).map((one) => ({ name, one })),
    );
    const [first, ...others] = found;
    if (others.length > 0)
      throw new Error(`several components change ${keyOf(object)}: the chart has no form for that`);
    const plain = toTemplate(object);
    return first === undefined ? plain : when(withComponent(first.name), toTemplate(first.one), plain);
  });
  const added = components.map(({ name, added: more }) => when(withComponent(name), documents(more.map(toTemplate))));
  return when(`eq .Values.shape "${shape}"`, documents(texts) + added.join(''));
};

const values = `# Values of the chart; all of them.

# With Knative, or in one process without it: knative or single.
shape: knative

# Of every image, functions, transfer-job and boot-job: one place, for functions and for Jobs.
registry: bullion
tag: "${release}"

# Pods that answer admission. Default: 2 with Knative, 1 without.
replicas:

# Settings of every function, by their variables: docs/reference.md. PUBLIC_URL: https://images.example
settings: {}

components:
  # Images in the browser.
  console: false
  # Kinds of the Prometheus operator: monitors, alerts, dashboard.
  monitoring: false
  networkPolicies: false

# Whether the chart creates the namespace ${systemNamespace}; false if \`helm --create-namespace\` does.
createNamespace: true
`;

const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  additionalProperties: false,
  properties: {
    shape: { enum: shapeNames },
    registry: { type: 'string', minLength: 1 },
    tag: { type: 'string', minLength: 1 },
    replicas: { type: ['integer', 'null'], minimum: 1 },
    settings: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
    components: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(componentNames.map((name) => [name, { type: 'boolean' }])),
    },
    createNamespace: { type: 'boolean' },
    // Of Helm itself, for charts with this one in them.
    global: { type: 'object' },
  },
};

const settingsTemplate = `{{- with .Values.settings }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${settingsConfig}
  namespace: ${systemNamespace}
  labels:
    app.kubernetes.io/name: bullion
    app.kubernetes.io/part-of: bullion
data:
{{- range $name, $value := . }}
  {{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
`;

const isNamespace = ({ kind }: GeneratedManifest): boolean => kind === 'Namespace';
const isCrd = ({ kind }: GeneratedManifest): boolean => kind === 'CustomResourceDefinition';

/** \`outputs\`: all manifests and kustomizations. */
export const chartOutputs = (outputs: Outputs): Outputs => {
  const read = shapeNames.map((shape) => ({ shape, ...readShape(outputs, shape) }));
  const changed = new Set(read.flatMap(({ components }) => components.flatMap((one) => one.changed.map(keyOf))));
  const [first, ...others] = read.map(({ objects }) => objects);
  const isEverywhere = (object: GeneratedManifest): boolean =>
    others.every((objects) => objects.some((other) => isDeepStrictEqual(other, object)));
  const alike = (first ?? []).filter((object) => !changed.has(keyOf(object)) && isEverywhere(object));
  const alikeKeys = new Set(alike.map(keyOf));
  const templates = {
    'crds.yaml': documents(alike.filter(isCrd).map(toTemplate)),
    'common.yaml':
      when('.Values.createNamespace', documents(alike.filter(isNamespace).map(toTemplate))) +
      documents(alike.filter((object) => !isCrd(object) && !isNamespace(object)).map(toTemplate)),
    ...Object.fromEntries(
      read.map(({ shape, objects, components }) => {
        const own = objects.filter((object) => !alikeKeys.has(keyOf(object)));
        return [`${shape}.yaml`, shapeTemplate(shape, own, components)];
      }),
    ),
    'settings.yaml': settingsTemplate,
  };
  const meta = {
    apiVersion: 'v2',
    name: 'bullion',
    description: 'Golden VM images for KubeVirt',
    type: 'application',
    version: release,
    appVersion: release,
  };
  return {
    [`${chartDir}/Chart.yaml`]: banner(source) + stringify(meta),
    [`${chartDir}/values.yaml`]: banner(source) + values,
    [`${chartDir}/values.schema.json`]: `${JSON.stringify(schema, undefined, 2)}\n`,
    ...Object.fromEntries(
      Object.entries(templates).map(([name, text]) => [`${chartDir}/templates/${name}`, banner(source) + text]),
    ),
  };
};
