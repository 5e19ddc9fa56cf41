// The output of kustomize for the manifests: each way to install is complete. Needs kubectl.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kustomizeOutputs } from '#infra/generate/kustomize.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { imageNames } from '#infra/generate/wiring.ts';
import { builtinSchema } from '#local-cluster/api-server/schema/builtin.ts';
import { type JsonSchema, pruneObject, validateObject } from '#local-cluster/api-server/schema/structural.ts';
import { admissionCertificate } from '#shared/api/names.ts';
import { exportFolder } from '#shared/backup/open.ts';
import { type NfsTarget, readTarget } from '#shared/backup/target.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { parseConfig, callerSettings } from '#shared/runtime/config.ts';
import { callerRulesOf } from '#shared/runtime/caller.ts';
import { z } from 'zod';
import { imageRef } from '#test/support/builders.ts';
import { infraDir as infra, overlayWith, renderText } from '#test/support/overlay.ts';
import { hasKubectl } from '#test/support/tools.ts';
import { readUpstreamCrds } from '#test/support/shared-folder.ts';

const canRender = hasKubectl();

interface Named {
  readonly name: string;
}

interface Pod {
  readonly serviceAccountName: string;
  readonly containers: readonly {
    readonly image: string;
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly volumeMounts: readonly (Named & { readonly mountPath: string })[];
  }[];
  readonly volumes: readonly (Named & { readonly secret: { readonly secretName: string } })[];
}

/** The checked parts of Triggers, Certificates and workloads; each kind has some of them. */
interface Spec {
  readonly broker: string;
  readonly subscriber: { readonly ref: Named; readonly audience: string };
  readonly delivery: { readonly deadLetterSink: { readonly ref: Named } };
  readonly template?: { readonly spec: Pod };
}

interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Record<string, string>;
  };
  readonly spec?: Spec;
  readonly webhooks?: readonly {
    readonly name: string;
    readonly rules: readonly { readonly apiGroups: readonly string[] }[];
    readonly clientConfig: { readonly service: Named };
  }[];
  readonly roleRef?: { readonly name: string };
  readonly subjects?: readonly { readonly name: string }[];
}

type Specified = Rendered & { readonly spec: Spec };

const render = (folder: string): readonly Rendered[] =>
  parseAllDocuments(renderText(folder)).map((document) => document.toJS() as Rendered);

const own = overlayWith(['oidc'], {
  images: imageNames.map((name) => ({
    name: `bullion/${name}`,
    newName: `registry.example/bullion/${name}`,
    newTag: 'v1',
  })),
});
const exported = { server: 'nas.rack7.example', path: '/tank/backups' };
const withExport = overlayWith(['nfs-backups'], {
  patches: [
    {
      target: { kind: 'PersistentVolume', name: 'bullion-backups' },
      patch: JSON.stringify([{ op: 'replace', path: '/spec/nfs', value: exported }]),
    },
    {
      target: { group: 'serving.knative.dev', kind: 'Service', name: 'backup-metadata' },
      patch: JSON.stringify([
        {
          op: 'replace',
          path: '/spec/template/spec/containers/0/volumeMounts/0/mountPath',
          value: `/backups/${exported.server}${exported.path}`,
        },
      ]),
    },
  ],
});
const watched = overlayWith(['monitoring']);
const besideCdi = overlayWith(['cdi']);
const patient = overlayWith(['retry-after']);
const overlays = [own, withExport, watched, besideCdi, patient];
afterAll(() => overlays.forEach((dir) => rmSync(dir, { recursive: true })));

const ways = ['', 'overlays/minimal', 'overlays/production', 'overlays/openshift'];

it('keeps the kustomizations up to date', () => {
  for (const [path, text] of Object.entries(kustomizeOutputs(manifestOutputs()))) {
    expect(readFileSync(join(infra, '..', path), 'utf8'), `${path}: run npm run gen`).toBe(text);
  }
});

const schemas = new Map<string, JsonSchema>(
  readUpstreamCrds('knative').flatMap(({ spec }) =>
    spec.versions.map(
      ({ name, schema }) => [`${spec.group}/${name} ${spec.names.kind}`, schema.openAPIV3Schema] as const,
    ),
  ),
);

/** By upstream's definition, or by Kubernetes' own model. */
const schemaOf = ({ apiVersion, kind }: Rendered): JsonSchema | undefined => {
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  return group.endsWith('knative.dev') ? schemas.get(`${apiVersion} ${kind}`) : builtinSchema(group, version, kind);
};
/** Neither next to the repository nor part of Kubernetes; a real API server validates them by their definitions: applied.test.ts. */
const ofOthers = /^(monitoring\.coreos\.com|cert-manager\.io)\//;

/** The object as parsed by its definition, with its errors. */
const judge = (object: Rendered): object => {
  const schema = schemaOf(object);
  if (schema === undefined) return { faults: `nobody defines ${object.apiVersion} ${object.kind}` };
  const checked = object as unknown as Parameters<typeof validateObject>[1];
  // Definitions contain recursive schemas: their content is validated by a real API server.
  const faults = object.kind === 'CustomResourceDefinition' ? [] : validateObject(schema, checked);
  return { faults, object: pruneObject(schema, checked).object };
};
const expectValid = (objects: readonly Rendered[]): void => {
  const judged = objects.filter(({ apiVersion }) => !ofOthers.test(apiVersion));
  expect(judged.map(judge)).toEqual(judged.map((object) => ({ faults: [], object })));
};

it.skipIf(!canRender || schemas.size === 0)('renders valid manifests where they are applied on their own', () => {
  const apart = parseAllDocuments(readFileSync(join(infra, 'webhooks/certificate.yaml'), 'utf8'));
  const objects = [...render(join(infra, 'apis')), ...apart.map((document) => document.toJS() as Rendered)];
  expectValid(objects);
  expect(objects.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['APIService', 'Deployment', 'Certificate']));
});

describe.skipIf(!canRender).each([...ways.map((way) => join(infra, way)), ...overlays])(
  'rendered from %s',
  (folder) => {
    const objects = canRender ? render(folder) : [];
    const names = (kind: string): readonly string[] =>
      objects.filter((one) => one.kind === kind).map((one) => one.metadata.name);
    const ofKind = (kind: string): readonly Rendered[] => objects.filter((one) => one.kind === kind);

    it('has each object once, and the namespace of all others', () => {
      const keys = objects.map(({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`);
      expect(new Set(keys).size).toBe(keys.length);
      expect(names('Namespace')).toEqual(['bullion-system']);
      // Extension servers may read one ConfigMap in the namespace of the API server.
      const own = objects.filter(({ roleRef }) => roleRef?.name !== 'extension-apiserver-authentication-reader');
      for (const { metadata } of own) expect(['bullion-system', undefined]).toContain(metadata.namespace);
    });

    it('refers only to objects that exist', () => {
      for (const { spec } of ofKind('Trigger') as readonly Specified[]) {
        expect(names('Service')).toContain(spec.subscriber.ref.name);
        expect(names('Service')).toContain(spec.delivery.deadLetterSink.ref.name);
        expect(names('Broker')).toContain(spec.broker);
      }
      for (const { webhooks } of objects) {
        for (const { clientConfig } of webhooks ?? []) expect(names('Service')).toContain(clientConfig.service.name);
      }
      for (const { roleRef, subjects } of ofKind('ClusterRoleBinding')) {
        expect(names('ClusterRole')).toContain(roleRef?.name);
        // Every user with access to the cluster may read one thing: the URL for uploads.
        const others = roleRef?.name === 'bullion-config-reader' ? ['system:authenticated'] : [];
        for (const { name } of subjects ?? []) expect([...names('ServiceAccount'), ...others]).toContain(name);
      }
      const pods = objects.flatMap(({ spec }) => (spec?.template?.spec === undefined ? [] : [spec.template.spec]));
      for (const pod of pods) expect(names('ServiceAccount')).toContain(pod.serviceAccountName);
    });

    it('serves only certificates that something creates', () => {
      const [{ spec }] = ofKind('Deployment') as [Specified];
      // Created by cron-tick unless it is configured to leave that to others.
      const tick = objects.find((one) => one.apiVersion.startsWith('serving') && one.metadata.name === 'cron-tick');
      const environment = tick!.spec!.template!.spec.containers[0]!.env;
      const isOurs = !environment.some(({ name, value }) => name === 'OWN_CERTIFICATE' && value === 'false');
      const made = [
        ...(isOurs ? [admissionCertificate.serverSecret] : []),
        ...ofKind('Service').flatMap(
          (one) => one.metadata.annotations?.['service.beta.openshift.io/serving-cert-secret-name'] ?? [],
        ),
      ];
      const pod = spec.template!.spec;
      for (const { env, volumeMounts = [] } of pod.containers) {
        const isMounted = env.some(({ name }) => name === 'TLS_DIR');
        const mounted = volumeMounts.find((mount) => mount.mountPath === '/tls');
        const volume = pod.volumes?.find((one) => one.name === mounted?.name);
        expect(made).toContain(isMounted ? volume?.secret.secretName : admissionCertificate.serverSecret);
        expect(isMounted || env.some(({ name, value }) => name === 'TLS_FROM_SECRET' && value === 'true')).toBe(true);
      }
    });

    it.skipIf(schemas.size === 0)('has only valid objects, without unknown fields', () => {
      expectValid(objects);
      expect(objects.filter(({ apiVersion, kind }) => schemas.has(`${apiVersion} ${kind}`)).length).toBeGreaterThan(10);
    });
  },
);

/** Of every container, and of the Jobs that functions create. */
const imagesOf = (folder: string): readonly string[] =>
  render(folder)
    .flatMap(({ spec }) => spec?.template?.spec.containers ?? [])
    .flatMap(({ image, env }) => [image, ...env.flatMap((one) => (one.name.endsWith('_IMAGE') ? one.value : []))]);

describe.skipIf(!canRender)('images', () => {
  const { version } = JSON.parse(readFileSync(join(infra, '../package.json'), 'utf8')) as { version: string };

  it.each(['', 'overlays/production', 'components/monitoring', 'apis'])(
    'of infra/%s have the tags of the release',
    (way) => {
      const images = new Set(imagesOf(way === 'components/monitoring' ? watched : join(infra, way)));
      expect(images).toContain(`bullion/functions:${version}`);
      const others = images.difference(new Set(imageNames.map((name) => `bullion/${name}:${version}`)));
      expect([...others]).toEqual([]);
    },
  );

  it('are pulled when they are missing, with no other pull policy', () => {
    const containers = render(watched).flatMap(({ spec }) => spec?.template?.spec.containers ?? []);
    const policies = containers.map((one) => (one as { imagePullPolicy?: string }).imagePullPolicy);
    expect(new Set(policies)).toEqual(new Set(['IfNotPresent']));
  });

  it('of functions and of Jobs are replaced in one place, and no other setting changes', () => {
    const places = imageNames.map((name) => `registry.example/bullion/${name}:v1`);
    expect(new Set(imagesOf(own))).toEqual(new Set(places));
    const plain = overlayWith(['oidc']);
    const names = (text: string) =>
      text.replaceAll(new RegExp(`(registry\\.example/)?(bullion/(${imageNames.join('|')})):\\S+`, 'g'), '$2');
    expect(names(renderText(own))).toBe(names(renderText(plain)));
    rmSync(plain, { recursive: true });
  });
});

describe.skipIf(!canRender)('with the component oidc', () => {
  it('each function lists the Triggers that call it, and each Trigger the audience', () => {
    const objects = render(own);
    for (const { metadata, spec } of objects.filter(({ kind }) => kind === 'Trigger') as readonly Specified[]) {
      const { name } = spec.subscriber.ref;
      const service = objects.find((one) => one.apiVersion.startsWith('serving') && one.metadata.name === name);
      const container = service!.spec!.template!.spec.containers[0]!;
      expect(container.image).toBe('registry.example/bullion/functions:v1');
      const environment = Object.fromEntries(container.env.map(({ name: variable, value }) => [variable, value]));
      const rules = callerRulesOf(parseConfig(z.object(callerSettings), environment));
      expect(rules?.audience).toBe(spec.subscriber.audience);
      expect(environment['TRANSFER_SINK_AUDIENCE']).toBe('eventing.knative.dev/broker/bullion-system/bullion');
      expect(rules?.subjects).toContain(
        `system:serviceaccount:bullion-system:${metadata.name}-oidc-eventing.knative.dev-trigger`,
      );
    }
  });

  it('Jobs may send progress to the Broker, and no other event', () => {
    const policy = render(own).find(({ kind, metadata }) => kind === 'EventPolicy' && metadata.name === 'transfers');
    expect(policy?.spec).toEqual({
      to: [{ ref: { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: 'bullion' } }],
      from: [{ sub: 'system:serviceaccount:*' }],
      filters: [{ exact: { type: 'dev.bullion.transfer.progressed' } }],
    });
  });
});

describe.skipIf(!canRender)('with the component cdi', () => {
  const objects = canRender ? render(besideCdi) : [];

  it('leaves the definitions of CDI to CDI', () => {
    const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
    expect(definitions.map(({ metadata }) => metadata.name)).toContain('virtualmachineimages.harvesterhci.io');
    expect(definitions.filter(({ metadata }) => metadata.name.endsWith('.cdi.kubevirt.io'))).toEqual([]);
  });

  it('leaves the API of upload tokens to the server of CDI', () => {
    expect(objects.filter(({ kind }) => kind === 'APIService')).toEqual([]);
  });

  it('configures every function that moves or validates these kinds', () => {
    const containers = objects.flatMap(({ spec }) => spec?.template?.spec.containers ?? []);
    const told = containers.filter(({ env }) => env.some(({ name, value }) => name === 'CDI' && value === 'use'));
    const names = ['initialize', 'sidecar-sync', 'cron-tick', 'validate', 'mutate'];
    for (const name of names) expect(told.map((one) => (one as unknown as { args: string[] }).args[0])).toContain(name);
  });

  it('validates none of the objects of CDI, and protects those that images depend on', () => {
    const webhooks = objects.flatMap((one) => one.webhooks ?? []);
    const about = webhooks.filter(({ rules }) => rules.some(({ apiGroups }) => apiGroups.includes('cdi.kubevirt.io')));
    expect(about.map(({ name }) => name.split('.')[0])).toEqual(['marks', 'golden', 'marks', 'disks', 'locks']);
    expect(webhooks.map(({ name }) => name.split('.')[0])).toContain('images');
  });
});

describe.skipIf(!canRender)('with the component nfs-backups', () => {
  const objects = canRender ? render(withExport) : [];
  const find = (kind: string, name: string, group = 'v1'): Specified =>
    objects.find(
      (one) => one.kind === kind && one.metadata.name === name && one.apiVersion.startsWith(group),
    ) as Specified;
  const pod = () => find('Service', 'backup-metadata', 'serving').spec.template!.spec;

  it('the export is a volume with reclaim policy Retain', () => {
    const claim = find('PersistentVolumeClaim', 'bullion-backups');
    const volume = find('PersistentVolume', 'bullion-backups');
    expect(claim.spec).toMatchObject({ volumeName: volume.metadata.name, accessModes: ['ReadWriteMany'] });
    expect(volume.spec).toMatchObject({ nfs: exported, persistentVolumeReclaimPolicy: 'Retain' });
    expect(pod().volumes).toMatchObject([{ persistentVolumeClaim: { claimName: claim.metadata.name } }]);
  });

  it('the function that writes backups has it mounted at the configured path', () => {
    const { env, volumeMounts } = pod().containers[0]!;
    const folder = env.find(({ name }) => name === 'BACKUP_NFS_FOLDER')!.value;
    const fields = { type: 'nfs', endpoint: `nfs://${exported.server}:${exported.path}` };
    const { target } = readTarget({ where: 'a test', fields }) as { readonly target: NfsTarget };
    expect(volumeMounts).toMatchObject([{ name: pod().volumes[0]!.name, mountPath: exportFolder(folder, target) }]);
  });

  it('runs as the user that Jobs write with', () => {
    const job = buildTransferJob(
      { mode: 'inspect', owner: imageRef, source: { type: 'blank' }, retries: 0 },
      defaultSettings,
    );
    const { runAsUser } = job.spec!.template!.spec!.securityContext as { readonly runAsUser: number };
    const securityContext = { runAsUser, runAsGroup: runAsUser, runAsNonRoot: true };
    expect(pod().containers).toMatchObject([{ securityContext }]);
  });
});
