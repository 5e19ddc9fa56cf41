// The manifests on a real API server: it takes them, its CRD rules hold, and it calls our webhooks.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { installCrds } from '#local-cluster/install.ts';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import { type RealApiServer, startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { discoverIssuer, withCaller } from '#shared/runtime/caller.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { type Draft, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';
import { findShared } from '#test/support/shared-folder.ts';
import { acceptedChanges, createdImages, refusedChanges, refusedImages } from '#test/support/image-changes.ts';

const assetsDir = findAssets(process.env);
const examples = findShared('examples') ?? '';

const manifests = Object.values(manifestOutputs()).flatMap((text) =>
  parseAllDocuments(text).map((document) => document.toJSON() as KubeObject),
);
const stock = /^(v1|apps\/v1|policy\/v1|rbac\.authorization\.k8s\.io\/v1)$/;

const anyType = ({ apiVersion, kind }: KubeObject): ResourceType => {
  const [group = '', version = 'v1'] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const namespaced = !/^(Namespace|Cluster.*|.*WebhookConfiguration)$/.test(kind);
  return { group, version, kind, plural: `${kind.toLowerCase()}s`, namespaced };
};

const harvester = harvesterImageKind.type;
const hyperCloud = hyperCloudImageKind.type;

const typeOf = ({ apiVersion }: Draft): ResourceType => (apiVersion.startsWith('harvester') ? harvester : hyperCloud);
const keyOf = ({ metadata }: Draft) => ({ namespace: 'default', name: String(metadata['name']) });

describe.skipIf(assetsDir === undefined)('on a real API server', () => {
  let dataDir: string;
  let server: RealApiServer;
  let kube: KubeClient;
  let webhooks: RunningServer;

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'bullion-installed-'));
    server = await startRealApiServer({ assetsDir: assetsDir!, dataDir, durable: false });
    kube = createKubeClient(loadKubeConfig(server.kubeconfigPath));
    await installCrds(
      kube,
      manifests.filter(({ kind }) => kind === 'CustomResourceDefinition'),
    );
  });

  afterAll(async () => {
    await webhooks?.close();
    await server?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const create = (draft: Draft, dryRun = false): Promise<KubeObject> => {
    const { uid: _uid, ...metadata } = draft.metadata;
    const namespace = metadata['namespace'] ?? 'default';
    return kube.create(typeOf(draft), { ...draft, metadata: { ...metadata, namespace } } as unknown as KubeObject, {
      dryRun,
    });
  };

  const fieldsOf = async (write: Promise<unknown>): Promise<readonly string[] | 'accepted'> => {
    try {
      await write;
      return 'accepted';
    } catch (error) {
      if (error instanceof InvalidInput) return error.faults.map(({ field }) => field);
      throw error;
    }
  };

  it('accepts every manifest of a built-in kind', async () => {
    for (const manifest of manifests.filter(({ apiVersion }) => stock.test(apiVersion))) {
      await kube.apply(anyType(manifest), manifest, { fieldManager: 'test', force: true });
    }
    const roles = await kube.list(
      anyType({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: '' } }),
    );
    expect(roles.items.map(({ metadata }) => metadata.name)).toEqual(
      expect.arrayContaining(['bullion-initialize', 'bullion-sources']),
    );
  });

  it.skipIf(examples === '')('every example image is accepted by the CRDs', async () => {
    const drafts = readdirSync(examples)
      .filter((file) => /^(hypercloud-image|harvester-images)/.test(file))
      .flatMap((file) => parseAllDocuments(readFileSync(join(examples, file), 'utf8')))
      .map((document) => document.toJSON() as Draft);
    expect(drafts.length).toBeGreaterThanOrEqual(6);
    for (const draft of drafts) await create(draft, true);
  });

  describe('rules of the CRDs', () => {
    beforeAll(async () => {
      for (const image of Object.values(createdImages)) await create(image);
    });

    const patch = (of: keyof typeof createdImages, spec: object): Promise<unknown> =>
      kube.mergePatch(typeOf(createdImages[of]), keyOf(createdImages[of]), { spec }, { dryRun: true });

    it.each(refusedChanges)('reject a change of %s', async (_what, of, spec, field) => {
      expect(await fieldsOf(patch(of, spec))).toContain(field);
    });

    it.each(acceptedChanges)('accept a change of %s', async (_what, of, spec) => {
      expect(await fieldsOf(patch(of, spec))).toBe('accepted');
    });

    it.each(refusedImages)('reject %s', async (_what, image, field) => {
      expect(await fieldsOf(create(image, true))).toContain(field);
    });

    it('set defaults', async () => {
      const { displayName, sourceType } = aHarvesterImage().spec!;
      const draft = { ...aHarvesterImage(), spec: { displayName, sourceType } };
      expect(await create(draft, true)).toMatchObject({ spec: { backend: 'backingimage', retry: 3 } });
    });
  });

  describe('callers of functions', () => {
    const audience = 'serving.knative.dev/service/bullion-system/initialize';
    const account: ResourceType = {
      group: '',
      version: 'v1',
      kind: 'ServiceAccount',
      plural: 'serviceaccounts',
      namespaced: true,
    };
    const tokenOf = async (name: string, aud: string): Promise<string> => {
      const { status } = await kube.raw<{ readonly status: { readonly token: string } }>({
        method: 'POST',
        path: `/api/v1/namespaces/default/serviceaccounts/${name}/token`,
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [aud] } },
      });
      return status.token;
    };

    it('are authenticated by tokens of the API server: for this function, and for an account that may call it', async () => {
      const kind = { apiVersion: 'v1', kind: 'ServiceAccount' };
      for (const name of ['trigger', 'stranger'])
        await kube.create(account, { ...kind, metadata: { name, namespace: 'default' } });
      const app = { fetch: () => new Response(null, { status: 204 }) };
      const rules = { audience, subjects: ['system:serviceaccount:default:trigger'] };
      const guarded = withCaller(app, rules, { discover: () => discoverIssuer(kube), log: silentLogger });
      const ask = async (token: string): Promise<number> => {
        const headers = { authorization: `Bearer ${token}` };
        return (await guarded.fetch(new Request('http://initialize/', { method: 'POST', headers }))).status;
      };
      expect([
        await ask(await tokenOf('trigger', audience)),
        await ask(await tokenOf('trigger', 'another')),
        await ask(await tokenOf('stranger', audience)),
      ]).toEqual([204, 401, 403]);
    });
  });

  describe('webhooks', () => {
    beforeAll(async () => {
      const files = await ensureControlPlaneFiles(join(dataDir, 'webhook-tls'));
      const deps = { kube, log: silentLogger };
      const app = new Hono().route('/', createValidate(deps)).route('/', createMutate(deps));
      const tls = { certFile: files.certificate, keyFile: files.key };
      webhooks = await startServer({ app, log: silentLogger, port: 0, tls });
      const caBundle = readFileSync(files.ca).toString('base64');
      for (const manifest of manifests.filter(({ kind }) => kind.endsWith('WebhookConfiguration'))) {
        await kube.apply(anyType(manifest), withAddress(manifest, caBundle), { fieldManager: 'test', force: true });
      }
      const defaultClass = {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
        provisioner: 'example.dev/none',
      };
      await kube.create(storageClasses, defaultClass);
      const isRefused = async (): Promise<boolean> =>
        (await fieldsOf(create(aHyperCloudImage({ checksum: 'x' }), true))) !== 'accepted';
      await vi.waitUntil(isRefused, { timeout: 100_000, interval: 100 });
    });

    interface Configured extends KubeObject {
      readonly webhooks: readonly { readonly clientConfig: { readonly service: { readonly path: string } } }[];
    }

    const withAddress = (manifest: KubeObject, caBundle: string): KubeObject => {
      const { webhooks: hooks, ...rest } = manifest as Configured;
      const configured = hooks.map(({ clientConfig, ...hook }) => ({
        ...hook,
        clientConfig: { url: `${webhooks.url}${clientConfig.service.path}`, caBundle },
      }));
      return { ...rest, webhooks: configured } as KubeObject;
    };

    it('reject with every error and its field', async () => {
      const draft = aHyperCloudImage({ source: { http: 'ftp://a/b' }, checksum: 'x' }, { name: 'bad' });
      expect(await fieldsOf(create(draft))).toEqual(expect.arrayContaining(['spec.source.http', 'spec.checksum']));
    });

    it('set label and storage class, and accept a display name only once', async () => {
      const displayName = 'Debian 12 (bookworm)';
      const created = await create(aHarvesterImage({ displayName }, { name: 'debian' }));
      expect(created).toMatchObject({
        metadata: {
          labels: { 'harvesterhci.io/imageDisplayName': expect.stringMatching(/^sha256-/) },
          annotations: { 'harvesterhci.io/storageClassName': 'standard' },
        },
        spec: { targetStorageClassName: 'standard' },
      });
      await expect(create(aHarvesterImage({ displayName }, { name: 'again' }))).rejects.toMatchObject({
        code: 'Conflict',
      });
    });

    // That the volume of an image is kept: flows/admission-objects, which runs on this server, too.
    it('remove marks from a claim that only claims to hold an image, and let it be deleted', async () => {
      const image = await create(aHyperCloudImage({}, { name: 'held' }));
      const volume = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name: 'held-image-pvc',
          namespace: 'default',
          labels: {
            'bullion.dev/owner-uid': image.metadata.uid ?? '',
            'bullion.dev/owner-kind': 'VirtualMachineImage.hypercloud.tmaxanc.com',
            'bullion.dev/role': 'volume',
          },
          annotations: {
            'bullion.dev/owner-name': 'held',
            'bullion.dev/owner-namespace': 'default',
            'bullion.dev/populated': '{}',
          },
        },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      } as const;
      const made = await kube.create(persistentVolumeClaims, volume);
      expect(Object.keys({ ...made.metadata.labels, ...made.metadata.annotations }).join()).not.toMatch(/bullion\.dev/);
      const key = { namespace: 'default', name: 'held-image-pvc' };
      await kube.delete(persistentVolumeClaims, key);
      await kube.delete(hyperCloud, { namespace: 'default', name: 'held' });
    });

    it('that are down block new images, and nothing else', async () => {
      const type = hyperCloud;
      const key = { namespace: 'default', name: 'leaving' };
      await create(aHyperCloudImage({}, { name: 'leaving', finalizers: ['bullion.dev/image'] }));
      await kube.delete(type, key);
      await webhooks.close();
      await expect(create(aHyperCloudImage({}, { name: 'new' }))).rejects.toMatchObject({ retryable: true });
      await kube.create(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'mine', namespace: 'default' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      });
      await kube.mergePatch(type, key, { metadata: { finalizers: null } });
      expect(await kube.get(type, key)).toBeUndefined();
    });
  });
});
