// Every generated file of the repository by its path: written by main.ts, or compared in --check.
import { buildCrd } from '#infra/generate/crd.ts';
import { buildTriggers, children, goldenOwners, jobOwners, made, needed, objects, reads, sources } from './declared.ts';
import { buildService, buildTransferService } from '#infra/generate/services.ts';
import {
  buildApiServerSources,
  buildBroker,
  buildPingSource,
  buildSinkBinding,
  buildOptionalList,
} from '#infra/generate/knative.ts';
import { type GeneratedManifest, partOf, toYaml } from '#infra/generate/manifest.ts';
import { buildMetricsAccess } from '#infra/generate/monitoring.ts';
import { buildApiServices, buildApiWorkload } from '#infra/generate/apis.ts';
import {
  buildAdmissionAccess,
  buildDriverAccess,
  buildEventSourceAccess,
  buildOwnAccess,
  buildSourceAccess,
  buildTransferAccess,
} from '#infra/generate/rbac.ts';
import { buildUserRoles } from '#infra/generate/user-roles.ts';
import {
  buildAdmissionWorkload,
  buildCertificate,
  buildCertificateAccess,
  buildWebhookConfiguration,
} from './webhooks.ts';
import { backupHolders, eventFunctions } from '#infra/generate/event-functions.ts';
import { admissionFunctions, diskUsers, templateHolders, transferFunction } from '#infra/generate/wiring.ts';
import { servedKinds, reportedKinds } from '#shared/api/kinds.ts';
import { systemNamespace } from '#shared/api/names.ts';

/** Path relative to the root of the repository → content. */
export type Outputs = Readonly<Record<string, string>>;

const wiring = 'infra/generate/wiring.ts';
const kindsAndBackends = 'shared/api/kinds.ts and the watchedChildren of shared/backends';

export const namespace: GeneratedManifest = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: systemNamespace,
    labels: { ...partOf('bullion'), 'pod-security.kubernetes.io/enforce': 'restricted' },
  },
};

const crds = (): Outputs =>
  Object.fromEntries(
    [...servedKinds, ...reportedKinds].map((kind) => [
      `infra/crds/${kind.type.group}_${kind.type.plural}.yaml`,
      toYaml('shared/api', [buildCrd(kind)]),
    ]),
  );

const knative = (): Outputs => ({
  'infra/knative/broker.yaml': toYaml(wiring, [buildBroker()]),
  'infra/knative/triggers.yaml': toYaml(`${wiring}, ${kindsAndBackends}`, buildTriggers()),
  'infra/knative/sources.yaml': toYaml(kindsAndBackends, [...buildApiServerSources(sources), buildPingSource()]),
  'infra/knative/optional-sources.yaml': toYaml(kindsAndBackends, [buildOptionalList(sources)]),
  'infra/knative/services.yaml': toYaml(wiring, [
    ...eventFunctions.map(buildService),
    buildTransferService(),
    buildSinkBinding(),
  ]),
});

const rbac = (): Outputs => ({
  ...Object.fromEntries(
    eventFunctions.map((fn) => [
      `infra/rbac/${fn.name}.yaml`,
      toYaml(
        `${wiring}, ${kindsAndBackends}`,
        fn.access === undefined
          ? buildDriverAccess(fn, { objects, owners: jobOwners, children, made, reads })
          : buildOwnAccess(fn.name, fn.access),
      ),
    ]),
  ),
  'infra/rbac/admission.yaml': toYaml(`${wiring}, ${kindsAndBackends}`, buildAdmissionAccess(goldenOwners, needed)),
  'infra/rbac/transfer.yaml': toYaml(wiring, buildTransferAccess(transferFunction.name, transferFunction.reads)),
  'infra/rbac/event-sources.yaml': toYaml('shared/resources/event-sources.ts', buildEventSourceAccess()),
  'infra/rbac/certificate.yaml': toYaml('shared/certificate', buildCertificateAccess()),
  'infra/rbac/sources.yaml': toYaml(
    kindsAndBackends,
    buildSourceAccess([...sources.objects, ...sources.children, ...templateHolders, ...backupHolders, ...diskUsers]),
  ),
  // Part of the component `monitoring`, which includes the account.
  'infra/components/monitoring/rbac.yaml': toYaml('shared/metrics', buildMetricsAccess()),
  'infra/rbac/users.yaml': toYaml('shared/api/kinds.ts', buildUserRoles(objects)),
});

const webhooks = (): Outputs => ({
  ...Object.fromEntries(
    admissionFunctions.map((fn) => [
      `infra/webhooks/${fn.name}.yaml`,
      toYaml(wiring, [buildWebhookConfiguration(fn, objects)]),
    ]),
  ),
  'infra/webhooks/workload.yaml': toYaml(wiring, buildAdmissionWorkload()),
  [certManagerFile]: toYaml(wiring, buildCertificate()),
});

const apis = (): Outputs => ({
  'infra/apis/upload.yaml': toYaml(wiring, buildApiServices()),
  'infra/apis/workload.yaml': toYaml(wiring, buildApiWorkload()),
});

/** For certificates managed by cert-manager; applied separately. */
export const certManagerFile = 'infra/webhooks/certificate.yaml';

/** All manifests, and their kustomizations: `kubectl apply -k infra`. */
export const manifestOutputs = (): Outputs => ({
  'infra/base/namespace.yaml': toYaml('infra/generate/outputs.ts', [namespace]),
  ...crds(),
  ...rbac(),
  ...knative(),
  ...webhooks(),
  ...apis(),
});
