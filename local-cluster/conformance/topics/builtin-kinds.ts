// Stored objects of built-in kinds: their defaults and their rules, for the kinds that the product writes.
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import {
  type Body,
  core,
  create,
  expectStatus,
  failureOf,
  grouped,
  mergePatch,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

const template = (spec: Body = {}): Body => ({
  spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'example.com/x:1' }], ...spec },
});
const job = (spec: Body): Body => ({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec });
const claim = (spec: Body): Body => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'c' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'none',
    resources: { requests: { storage: '1Gi' } },
    ...spec,
  },
});

const refused = async (t: CaseContext, path: string, bodies: Readonly<Record<string, Body>>): Promise<void> => {
  for (const [label, body] of Object.entries(bodies)) {
    t.same(label, failureOf(expectStatus(await t.call('POST', path, { body }), 422)));
  }
};

const cluster = async (t: CaseContext, path: string, body: Body): Promise<void> => {
  t.same('object', await create(t, path, body));
  const name = (body['metadata'] as { name: string }).name;
  t.cleanup(() => t.call('DELETE', `${path}/${name}`));
};

export const builtinKinds: Topic = {
  topic: 'builtin-kinds',
  cases: {
    'a Pod gets its defaults': async (t) => {
      const spec = {
        containers: [
          {
            name: 'main',
            image: 'example.com/main',
            ports: [{ containerPort: 80 }],
            livenessProbe: { httpGet: { port: 80 } },
            env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          },
        ],
        volumes: [
          { name: 'v', emptyDir: {} },
          { name: 's', secret: { secretName: 's' } },
          { name: 'c', configMap: { name: 'c' } },
        ],
      };
      t.same('pod', await create(t, core(await t.namespace(), 'pods'), pod('p', spec)));
    },
    'an invalid Pod is rejected': async (t) => {
      const path = core(await t.namespace(), 'pods');
      await refused(t, path, {
        'no containers': { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} },
        'no image': pod('p', { containers: [{ name: 'c' }] }),
        'same name twice': pod('p', {
          containers: [
            { name: 'c', image: 'x' },
            { name: 'c', image: 'x' },
          ],
        }),
        'unknown volume': pod('p', {
          containers: [{ name: 'c', image: 'x', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
        }),
        'restart policy': pod('p', { restartPolicy: 'Sometimes' }),
      });
    },
    'the spec of a Pod is mostly immutable': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'pods'), pod('p'));
      const path = core(ns, 'pods', 'p');
      expectStatus(
        await mergePatch(t, path, { spec: { containers: [{ name: 'main', image: 'example.com/other' }] } }),
        200,
      );
      const answer = expectStatus(await mergePatch(t, path, { spec: { hostname: 'other' } }), 422);
      t.same('reason', {
        field: (answer.body as { details: { causes: readonly { field: string; reason: string }[] } }).details.causes[0]
          ?.field,
      });
    },
    'a Job gets its defaults, selector and labels': async (t) => {
      t.same(
        'job',
        await create(
          t,
          grouped('batch/v1', await t.namespace(), 'jobs'),
          job({ template: template(), backoffLimit: 3, activeDeadlineSeconds: 600 }),
        ),
      );
    },
    'an invalid Job is rejected': async (t) => {
      await refused(t, grouped('batch/v1', await t.namespace(), 'jobs'), {
        'restart policy': job({ template: template({ restartPolicy: 'Always' }) }),
        'negative limits': job({
          template: template(),
          backoffLimit: -1,
          parallelism: -1,
          activeDeadlineSeconds: -1,
          ttlSecondsAfterFinished: -1,
        }),
        'no template': job({}),
      });
    },
    'the template of a Job is immutable, its field suspend is not': async (t) => {
      const path = grouped('batch/v1', await t.namespace(), 'jobs');
      await create(t, path, job({ template: template() }));
      expectStatus(await mergePatch(t, `${path}/j`, { spec: { suspend: true } }), 200);
      const answer = await mergePatch(t, `${path}/j`, { spec: { template: { spec: { restartPolicy: 'OnFailure' } } } });
      expectStatus(answer, 422);
    },
    'a claim gets its defaults': async (t) => {
      t.same('claim', await create(t, core(await t.namespace(), 'persistentvolumeclaims'), claim({})));
    },
    'a claim keeps its data source': async (t) => {
      const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' };
      t.same(
        'claim',
        await create(
          t,
          core(await t.namespace(), 'persistentvolumeclaims'),
          claim({ dataSource, volumeMode: 'Block' }),
        ),
      );
    },
    'an invalid claim is rejected': async (t) => {
      await refused(t, core(await t.namespace(), 'persistentvolumeclaims'), {
        'no access modes': claim({ accessModes: [] }),
        'unknown access mode': claim({ accessModes: ['ReadSometimes'] }),
        'no size': claim({ resources: {} }),
        'no size at all': claim({ resources: { requests: { storage: '0' } } }),
        'volume mode': claim({ volumeMode: 'Tape' }),
      });
    },
    'the spec of a claim is immutable, except for its size once bound': async (t) => {
      const ns = await t.namespace();
      const path = core(ns, 'persistentvolumeclaims', 'c');
      await create(t, core(ns, 'persistentvolumeclaims'), claim({}));
      t.same('class', failureOf(expectStatus(await mergePatch(t, path, { spec: { storageClassName: 'other' } }), 422)));
      const grown = { spec: { resources: { requests: { storage: '2Gi' } } } };
      t.same('not bound', failureOf(expectStatus(await mergePatch(t, path, grown), 422)));
      const smaller = await mergePatch(t, path, { spec: { resources: { requests: { storage: '1Mi' } } } });
      t.same('smaller', { status: smaller.status });
      expectStatus(await mergePatch(t, path, { spec: { volumeName: 'v' } }), 200);
    },
    'a volume gets its defaults': async (t) => {
      const spec = {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'example.com', volumeHandle: 'h' },
      };
      await cluster(t, '/api/v1/persistentvolumes', {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: `pv-${t.id}` },
        spec,
      });
    },
    'a storage class gets its defaults, and its parameters are immutable': async (t) => {
      const path = '/apis/storage.k8s.io/v1/storageclasses';
      await cluster(t, path, {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: `sc-${t.id}` },
        provisioner: 'example.com/p',
        parameters: { a: 'b' },
      });
      const answer = await mergePatch(t, `${path}/sc-${t.id}`, { parameters: { a: 'c' } });
      t.same('changed', failureOf(expectStatus(answer, 422)));
    },
    'a claim without a class gets the default class': async (t) => {
      const path = '/apis/storage.k8s.io/v1/storageclasses';
      const ns = await t.namespace();
      const created = await create(t, core(ns, 'persistentvolumeclaims'), claim({ storageClassName: '' }));
      t.same('empty class stays', created);
      expectStatus(await t.call('GET', path), 200);
    },
    'a ServiceAccount, Service, Role and CronJob get their defaults': async (t) => {
      const ns = await t.namespace();
      t.same(
        'account',
        await create(t, core(ns, 'serviceaccounts'), {
          apiVersion: 'v1',
          kind: 'ServiceAccount',
          metadata: { name: 'a' },
        }),
      );
      const service = {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 's' },
        spec: { clusterIP: 'None', selector: { a: 'b' }, ports: [{ port: 80 }] },
      };
      t.same('service', await create(t, core(ns, 'services'), service));
      const cron = {
        apiVersion: 'batch/v1',
        kind: 'CronJob',
        metadata: { name: 'c' },
        spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: template() } } },
      };
      t.same('cron', await create(t, grouped('batch/v1', ns, 'cronjobs'), cron));
      const binding = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'b' },
        roleRef: { kind: 'Role', name: 'r' },
        subjects: [{ kind: 'User', name: 'x' }],
      };
      t.same('binding', await create(t, grouped('rbac.authorization.k8s.io/v1', ns, 'rolebindings'), binding));
    },
    'a Deployment gets its defaults': async (t) => {
      const spec = {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'example.com/x:1' }] } },
      };
      t.same(
        'deployment',
        await create(t, grouped('apps/v1', await t.namespace(), 'deployments'), {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'd' },
          spec,
        }),
      );
    },
  },
};
