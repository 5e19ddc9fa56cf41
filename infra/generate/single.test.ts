// The overlay `single`, as kustomize renders it: whole without Knative, with the rights of every function and no others. Needs kubectl.
import { rmSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kustomizeOutputs } from '#infra/generate/kustomize.ts';
import { imageNames } from '#infra/generate/wiring.ts';
import type { GeneratedManifest } from '#infra/generate/manifest.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { type Right, describe as describeRight, rightsOf } from '#infra/generate/rights.ts';
import { singlePorts } from '#infra/generate/single.ts';
import { SingleConfig } from '#infra/single/config.ts';
import { builtinSchema } from '#local-cluster/api-server/schema/builtin.ts';
import { validateObject } from '#local-cluster/api-server/schema/structural.ts';
import { admissionCertificate } from '#shared/api/names.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { infraDir, renderText } from '#test/support/overlay.ts';
import { hasKubectl } from '#test/support/tools.ts';

interface Env {
  readonly name: string;
  readonly value?: string;
}
interface Container {
  readonly args: readonly string[];
  readonly image: string;
  readonly env: readonly Env[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
}
interface Rendered extends GeneratedManifest {
  readonly spec: {
    readonly selector: Readonly<Record<string, string>>;
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: { readonly serviceAccountName: string; readonly containers: readonly Container[] };
    };
  };
  readonly webhooks?: readonly { readonly clientConfig: { readonly service: { readonly name: string } } }[];
}

const render = (folder: string): readonly Rendered[] =>
  parseAllDocuments(renderText(folder)).map((document) => document.toJS() as Rendered);

const temporary: string[] = [];
afterAll(() => temporary.forEach((dir) => rmSync(dir, { recursive: true })));
const overlay = (components: readonly string[], more: object = {}): string => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-single-'));
  temporary.push(dir);
  const content = {
    resources: [relative(dir, join(infraDir, 'overlays/single'))],
    components: components.map((name) => relative(dir, join(infraDir, 'components', name))),
    ...more,
  };
  writeFileSync(join(dir, 'kustomization.yaml'), JSON.stringify(content));
  return dir;
};

const containerOf = (objects: readonly Rendered[]): Container =>
  objects.find(({ kind }) => kind === 'Deployment')!.spec.template.spec.containers[0]!;

describe.skipIf(!hasKubectl())('the overlay single', () => {
  const objects = hasKubectl() ? render(join(infraDir, 'overlays/single')) : [];
  const ofKind = (wanted: string): readonly Rendered[] => objects.filter(({ kind }) => kind === wanted);
  const names = (kind: string): readonly string[] => ofKind(kind).map(({ metadata }) => metadata.name);

  it('needs nothing that Kubernetes does not have', () => {
    const groups = new Set(objects.map(({ apiVersion }) => apiVersion.split('/').at(-2) ?? ''));
    expect([...groups].filter((group) => group.includes('knative') || group.includes('cert-manager'))).toEqual([]);
    const builtin = objects.filter(({ kind }) => kind !== 'CustomResourceDefinition');
    for (const object of builtin) {
      const [version = '', group = ''] = object.apiVersion.split('/').toReversed();
      const schema = builtinSchema(group, version, object.kind);
      if (schema === undefined) throw new Error(`Kubernetes has no ${object.apiVersion} ${object.kind}`);
      expect({ object, faults: validateObject(schema, object as never) }).toEqual({ object, faults: [] });
    }
  });

  it('has one Deployment, one account, and each object once', () => {
    expect(names('Deployment')).toEqual(['bullion']);
    expect(names('ServiceAccount')).toEqual(['bullion']);
    expect(names('PodDisruptionBudget')).toEqual([]);
    const keys = objects.map(({ kind, metadata: { name, namespace } }) => `${kind} ${namespace ?? ''} ${name}`);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('each Service leads to a port of its container, and each webhook to a Service', () => {
    const { template } = ofKind('Deployment')[0]!.spec;
    const ports = containerOf(objects).ports.map(({ name }) => name);
    for (const { spec, metadata } of ofKind('Service')) {
      expect({ metadata, selector: spec.selector }).toEqual({ metadata, selector: template.metadata.labels });
      expect(ports).toContain(spec.ports[0]!.targetPort);
    }
    const called = objects.flatMap(({ webhooks = [] }) => webhooks.map((one) => one.clientConfig.service.name));
    expect(new Set(called)).toEqual(new Set(['validate', 'mutate']));
    for (const name of called) {
      expect(names('Service')).toContain(name);
      expect(admissionCertificate.hosts).toContain(`${name}.bullion-system.svc`);
    }
  });

  it('has exactly the rights of all functions together', () => {
    const withoutAccount = (right: Right): string => describeRight({ ...right, account: '' });
    const files = { ...manifestOutputs(), ...kustomizeOutputs(manifestOutputs()) };
    const manifests = Object.entries(files)
      .filter(([path]) => path.startsWith('infra/rbac/') || path === 'infra/components/monitoring/rbac.yaml')
      .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest));
    const wanted = rightsOf(manifests).filter(({ resource }) => resource !== 'apiserversources');
    const rights = rightsOf(objects);
    expect(new Set(rights.map(({ account }) => account))).toEqual(new Set(['bullion']));
    expect([...new Set(rights.map(withoutAccount))].toSorted()).toEqual(
      [...new Set(wanted.map(withoutAccount))].toSorted(),
    );
  });

  it('listens where its ports are', () => {
    const { env } = containerOf(objects);
    const environment = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const config = parseConfig(SingleConfig, environment);
    const { http, events, import: imports, metrics, admission } = singlePorts;
    expect(config).toMatchObject({ host: '0.0.0.0', port: http, eventsPort: events, importPort: imports });
    expect(config).toMatchObject({ metricsPort: metrics, admissionPort: admission });
    const services = names('Service').map((name) => `http://${name}.bullion-system.svc.cluster.local`);
    expect(services).toContain(config.transferUrl);
    expect(services).toContain(new URL(config.transferSink!).origin);
    expect(config.consolePort).toBeUndefined();
  });

  it('runs under the restricted Pod Security Standard, with a root that it cannot write', () => {
    expect(containerOf(objects).securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it('one place names the registry for functions and for Jobs', () => {
    const images = imageNames.map((name) => ({
      name: `bullion/${name}`,
      newName: `registry.example/bullion/${name}`,
      newTag: 'v1',
    }));
    const { image, env } = containerOf(render(overlay([], { images })));
    expect(image).toBe('registry.example/bullion/functions:v1');
    const jobs = env.find(({ name }) => name === 'TRANSFER_IMAGE')?.value;
    expect(jobs).toBe('registry.example/bullion/transfer-job:v1');
    const boots = env.find(({ name }) => name === 'BOOT_IMAGE')?.value;
    expect(boots).toBe('registry.example/bullion/boot-job:v1');
  });

  it('serves the console with its component', () => {
    const withConsole = render(overlay(['single-console']));
    const { ports, env } = containerOf(withConsole);
    const environment = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    expect(parseConfig(SingleConfig, environment).consolePort).toBe(singlePorts.console);
    expect(ports).toContainEqual({ name: 'console', containerPort: singlePorts.console });
    expect(withConsole.find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'console')).toBeDefined();
  });
});
