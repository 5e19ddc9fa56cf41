// The kustomizations of the manifests: a list in each folder, the base, optional components, and overlays. Called by main.ts.
import { parse, parseAllDocuments, stringify } from 'yaml';
import { buildCdiPatches } from '#infra/generate/components.ts';
import { buildAlerts } from '#infra/generate/alerts.ts';
import { buildDashboard } from '#infra/generate/dashboard.ts';
import { broker, brokerDelivery, retryAfterMax } from '#infra/generate/knative.ts';
import { type GeneratedManifest, banner, partOf, toYaml } from '#infra/generate/manifest.ts';
import { buildMonitoring, serviceMonitor } from '#infra/generate/monitoring.ts';
import { buildExportVolume, exportMountPatches } from '#infra/generate/components.ts';
import { buildConsolePolicy, buildNetworkPolicies } from '#infra/generate/network.ts';
import {
  type SourceRef,
  audienceOf,
  brokerAudience,
  buildEventPolicy,
  buildTransferPolicy,
  subjectsOf,
} from '#infra/generate/oidc.ts';
import { type Outputs, certManagerFile, namespace } from '#infra/generate/outputs.ts';
import { add, patch } from '#infra/generate/manifest.ts';
import { buildConsole } from '#infra/generate/services.ts';
import {
  buildSingle,
  buildSingleConsole,
  buildSinglePolicies,
  single,
  singleConsolePatch,
  singleImageFields,
  singlePatches,
  singleUploadPatches,
} from '#infra/generate/single.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { admissionFunctions, deadLetterFunction } from '#infra/generate/wiring.ts';
import { systemNamespace } from '#shared/api/names.ts';

const source = 'infra/generate/kustomize.ts';
const wiringSource = 'infra/generate/wiring.ts';
const folders = ['crds', 'rbac', 'knative', 'webhooks'] as const;

/** Applied separately: an APIService without its server would break discovery, and its certificate requires cert-manager. */
const apart = 'apis';

interface Kustomization {
  readonly resources?: readonly string[];
  readonly configurations?: readonly string[];
  readonly components?: readonly string[];
  readonly patches?: readonly object[];
}

/** Kustomizations are read by kustomize, not by a cluster, and have no names. */
const kustomization = (content: Kustomization): string =>
  write('kustomize.config.k8s.io/v1beta1', 'Kustomization', content);
const component = (content: Kustomization): string => write('kustomize.config.k8s.io/v1alpha1', 'Component', content);
const write = (apiVersion: string, kind: string, content: Kustomization): string =>
  banner(source) + stringify({ apiVersion, kind, ...content }, { lineWidth: 120, aliasDuplicateObjects: false });

const gone = (apiVersion: string, kind: string, name: string): object =>
  patch(kind, name, { $patch: 'delete', apiVersion, kind, metadata: { name, namespace: systemNamespace } });

/**
 * The image of Jobs is a setting of functions. Listed here, it is replaced by `images:` of every kustomization, like the image of a container;
 * other values are unchanged.
 */
const imageFields = {
  images: [{ group: 'serving.knative.dev', kind: 'Service', path: 'spec/template/spec/containers/env/value' }],
};

/** Manifests in a folder that are applied together. */
const listOf = (folder: string, manifests: Outputs): readonly string[] =>
  Object.keys(manifests)
    .filter((path) => path.startsWith(`infra/${folder}/`) && path !== certManagerFile)
    .map((path) => path.replace(`infra/${folder}/`, ''));

/** All senders to the Broker, as installed. */
const senders = (manifests: Outputs): readonly SourceRef[] =>
  Object.entries(manifests)
    .filter(([path]) => path.startsWith('infra/knative/'))
    .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest))
    .filter(({ apiVersion }) => apiVersion.startsWith('sources.knative.dev/'))
    .map(({ apiVersion, kind, metadata: { name } }) => ({ apiVersion, kind, name }));

const optionalNames = (manifests: Outputs): readonly string[] => {
  const { data } = parse(manifests['infra/knative/optional-sources.yaml'] ?? '') as { readonly data: object };
  return Object.keys(data).map((file) => file.replace('.json', ''));
};

/** All kustomizations, and the manifests of components. */
export const kustomizeOutputs = (manifests: Outputs): Outputs => ({
  ...Object.fromEntries(
    [...folders, apart].map((folder) => [
      `infra/${folder}/kustomization.yaml`,
      kustomization({ resources: listOf(folder, manifests) }),
    ]),
  ),
  'infra/base/images.yaml': banner(source) + stringify(imageFields),
  'infra/base/kustomization.yaml': kustomization({
    resources: ['namespace.yaml', ...folders.map((folder) => `../${folder}`)],
    configurations: ['images.yaml'],
  }),
  'infra/kustomization.yaml': kustomization({ resources: ['base'] }),
  'infra/components/network-policies/policies.yaml': toYaml('infra/generate/network.ts', buildNetworkPolicies()),
  'infra/components/network-policies/kustomization.yaml': component({ resources: ['policies.yaml'] }),
  'infra/components/oidc/policies.yaml': toYaml('infra/generate/oidc.ts', [
    buildEventPolicy(senders(manifests), optionalNames(manifests)),
    buildTransferPolicy(),
  ]),
  'infra/components/oidc/kustomization.yaml': component({ resources: ['policies.yaml'], patches: oidcPatches() }),
  'infra/components/retry-after/kustomization.yaml': component({ patches: retryAfterPatches() }),
  'infra/components/nfs-backups/volume.yaml': toYaml('infra/generate/components.ts', buildExportVolume()),
  'infra/components/nfs-backups/kustomization.yaml': component({
    resources: ['volume.yaml'],
    patches: exportMountPatches,
  }),
  'infra/components/cdi/kustomization.yaml': component({ patches: buildCdiPatches(manifests) }),
  'infra/components/console/console.yaml': toYaml(wiringSource, [...buildConsole(), buildConsolePolicy()]),
  'infra/components/console/kustomization.yaml': component({ resources: ['console.yaml'] }),
  'infra/components/monitoring/exporter.yaml': toYaml('infra/generate/monitoring.ts', buildMonitoring()),
  'infra/components/monitoring/kustomization.yaml': component({
    resources: ['rbac.yaml', 'exporter.yaml'],
    components: ['../alerts'],
  }),
  'infra/components/alerts/alerts.yaml': toYaml('infra/generate/alerts.ts', [buildAlerts()]),
  'infra/components/alerts/dashboard.yaml': toYaml('infra/generate/dashboard.ts', [buildDashboard()]),
  'infra/components/alerts/kustomization.yaml': component({ resources: ['alerts.yaml', 'dashboard.yaml'] }),
  'infra/overlays/single/single.yaml': toYaml('infra/generate/single.ts', [namespace, ...buildSingle()]),
  'infra/overlays/single/images.yaml': banner(source) + stringify(singleImageFields),
  'infra/overlays/single/kustomization.yaml': kustomization({
    resources: ['single.yaml', ...['crds', 'rbac', 'webhooks'].map((folder) => `../../${folder}`)],
    configurations: ['images.yaml'],
    patches: singlePatches(manifests),
  }),
  'infra/components/single-console/console.yaml': toYaml('infra/generate/single.ts', buildSingleConsole()),
  'infra/components/single-console/kustomization.yaml': component({
    resources: ['console.yaml'],
    patches: [patch('Deployment', single, singleConsolePatch)],
  }),
  'infra/components/single-upload-api/kustomization.yaml': component({
    resources: ['../../apis'],
    patches: singleUploadPatches,
  }),
  'infra/components/single-network-policies/policies.yaml': toYaml('infra/generate/single.ts', buildSinglePolicies()),
  'infra/components/single-network-policies/kustomization.yaml': component({ resources: ['policies.yaml'] }),
  'infra/components/single-monitoring/monitor.yaml': toYaml('infra/generate/monitoring.ts', [serviceMonitor]),
  'infra/components/single-monitoring/kustomization.yaml': component({
    resources: ['monitor.yaml'],
    components: ['../alerts'],
  }),
  'infra/overlays/minimal/kustomization.yaml': kustomization({ resources: ['../../base'], patches: minimalPatches }),
  'infra/overlays/production/kustomization.yaml': kustomization({
    resources: ['../../base'],
    components: ['../../components/network-policies'],
  }),
  'infra/overlays/openshift/kustomization.yaml': kustomization({
    resources: ['../../base'],
    components: ['../../components/network-policies'],
    patches: openShiftPatches(),
  }),
});

/** One replica of admission, and no PodDisruptionBudget that would prevent draining its node. */
const minimalPatches = [
  patch('Deployment', 'admission', [{ op: 'replace', path: '/spec/replicas', value: 1 }]),
  gone('policy/v1', 'PodDisruptionBudget', 'admission'),
];

/** Each function accepts tokens with its audience; each Trigger requests such tokens. */
const oidcPatches = (): readonly object[] => [
  ...eventFunctions.map(({ name }) =>
    patch('Service', name, [
      add('/spec/template/spec/containers/0/env/-', { name: 'OIDC_AUDIENCE', value: audienceOf(name) }),
      add('/spec/template/spec/containers/0/env/-', { name: 'OIDC_SUBJECTS', value: subjectsOf(name).join(',') }),
      add('/spec/template/spec/containers/0/env/-', { name: 'TRANSFER_SINK_AUDIENCE', value: brokerAudience }),
    ]),
  ),
  ...eventFunctions.flatMap((fn) =>
    fn.subscriptions.map(({ name }) =>
      patch('Trigger', `${fn.name}-${name}`, [
        add('/spec/subscriber/audience', audienceOf(fn.name)),
        add('/spec/delivery/deadLetterSink/audience', audienceOf(deadLetterFunction.name)),
      ]),
    ),
  ),
  patch('Broker', broker.name, [add('/spec/delivery/deadLetterSink/audience', audienceOf(deadLetterFunction.name))]),
];

/** Only for an Eventing that supports the field. */
const retryAfterPatches = (): readonly object[] => [
  ...eventFunctions.flatMap((fn) =>
    fn.subscriptions.map(({ name, delivery }) =>
      patch('Trigger', `${fn.name}-${name}`, [add('/spec/delivery/retryAfterMax', retryAfterMax[delivery])]),
    ),
  ),
  patch('Broker', broker.name, [add('/spec/delivery/retryAfterMax', retryAfterMax[brokerDelivery])]),
];

/** The service CA of OpenShift instead of our own: a certificate for each Service, its CA bundle in each configuration. */
const openShiftPatches = (): readonly object[] => [
  patch('Service', 'cron-tick', [
    add('/spec/template/spec/containers/0/env/-', { name: 'OWN_CERTIFICATE', value: 'false' }),
  ]),
  ...admissionFunctions.map(({ name }) =>
    patch('Service', name, [
      add('/metadata/annotations', { 'service.beta.openshift.io/serving-cert-secret-name': `${name}-tls` }),
    ]),
  ),
  ...['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'].map((kind) =>
    patch(kind, undefined, [
      { op: 'replace', path: '/metadata/annotations', value: { 'service.beta.openshift.io/inject-cabundle': 'true' } },
    ]),
  ),
  patch('Deployment', 'admission', {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'admission', labels: partOf('admission') },
    spec: {
      template: {
        spec: {
          containers: admissionFunctions.map(({ name }) => ({
            name,
            env: [{ name: 'TLS_DIR', value: '/tls' }],
            volumeMounts: [{ name: `${name}-tls`, mountPath: '/tls', readOnly: true }],
          })),
          volumes: admissionFunctions.map(({ name }) => ({
            name: `${name}-tls`,
            secret: { secretName: `${name}-tls` },
          })),
        },
      },
    },
  }),
];
