// What users do, in real pods on a real kubelet: every volume is compared on the node's disk with what was published.
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { aDataVolume, isOver } from '#test/support/data-volumes.ts';
import { until, untilGone, untilStatus } from '#test/support/until.ts';
import { setUp } from '#test/cluster/set-up.ts';
import {
  aClaim,
  anImage,
  diskIn,
  editorToken,
  fileOf,
  killProgram,
  kube,
  kubectl,
  outputOf,
  paths,
  probePod,
  run,
  shape,
  timed,
  transferUrl,
  untilBound,
  untilImage,
} from '#test/cluster/support.ts';

const mib = 2 ** 20;
const diskMib = 64;
const namespace = 'imports';
const restricted = 'restricted';
const at = (name: string, place = namespace) => ({ namespace: place, name });
const images = hyperCloudImageKind.type;
const dataVolumes = dataVolumeKind.type;

const { dir, offer } = setUp({
  [namespace]: {},
  [restricted]: { 'pod-security.kubernetes.io/enforce': 'restricted' },
});
const raw = join(dir, 'disk.raw');
const qcow2 = join(dir, 'disk.qcow2');
let url: string;
let slowUrl: string;
let mediumUrl: string;

beforeAll(async () => {
  await writeBootDisk(raw, { bytes: diskMib * mib, dataBytes: 24 * mib });
  await run('qemu-img', ['convert', '-O', 'qcow2', raw, qcow2]);
  url = await offer('disk.qcow2', qcow2);
  slowUrl = await offer('disk.qcow2', qcow2, mib / 4);
  mediumUrl = await offer('disk.qcow2', qcow2, 2 * mib);
});

describe('an image', () => {
  it.each(['local', 'local-wffc'])(
    'of a qcow2 over HTTP is Available on %s, and root disks are copies of it',
    async (storageClassName) => {
      const name = `image-${storageClassName}`;
      await kube.create(images, anImage(at(name), url, { storageClassName }));
      const status = await timed(`an image on ${storageClassName}`, () => untilImage(at(name)));
      expect(status).toMatchObject({ state: 'Available', virtualSize: diskMib * mib });
      expect(await diskIn(at(`${name}-image-pvc`), raw)).toBe('identical');
      const root = at(`root-${storageClassName}`);
      const dataSource = {
        apiGroup: 'snapshot.storage.k8s.io',
        kind: 'VolumeSnapshot',
        name: `${name}-image-snapshot`,
      };
      await kube.create(
        persistentVolumeClaims,
        aClaim(root, { size: '96Mi', volumeMode: 'Block', storageClassName, dataSource }),
      );
      if (storageClassName === 'local') await untilBound(root);
      else {
        const consumer = probePod({
          key: at('consumer'),
          args: ['open', '/dev/volume'],
          claim: root.name,
          isBlock: true,
        });
        await kube.create(pods, consumer);
        await untilBound(root);
      }
      expect(await diskIn(root, raw)).toBe('identical');
    },
  );

  it('in a namespace with the Pod Security Standard `restricted` and a ResourceQuota is imported', async () => {
    const hard = {
      pods: '2',
      'requests.cpu': '2',
      'requests.memory': '2Gi',
      'limits.cpu': '8',
      'limits.memory': '8Gi',
    };
    await kubectl(
      'create',
      'quota',
      'tight',
      '-n',
      restricted,
      `--hard=${Object.entries(hard)
        .map((pair) => pair.join('='))
        .join(',')}`,
    );
    await kube.create(images, anImage(at('tenant', restricted), url));
    expect(await untilImage(at('tenant', restricted))).toMatchObject({ state: 'Available' });
    expect(await diskIn(at('tenant-image-pvc', restricted), raw)).toBe('identical');
  });

  const killPod = async (): Promise<void> => {
    const { items } = await kube.list(pods, { namespace, fieldSelector: 'status.phase=Running' });
    const transfer = items.find(({ metadata }) => metadata.name.startsWith('import-'));
    await kube.delete(pods, at(transfer?.metadata.name ?? ''), { gracePeriodSeconds: 0 });
  };
  it.each([
    ['pod', killPod],
    ['kubelet', () => killProgram('kubelet')],
    ['containerd', () => killProgram('containerd')],
    ['csi-driver', () => killProgram('csi-driver')],
  ] as const)('whose %s is killed in mid-import is imported', async (what, kill) => {
    const name = `killed-${what}`;
    await kube.create(images, anImage(at(name), slowUrl));
    await untilStatus(kube, images, at(name), ({ phase, progress = 0 }) => phase === 'Downloading' && progress > 0);
    await kill();
    expect(await timed(`an image without its ${what}`, () => untilImage(at(name), 240))).toMatchObject({
      state: 'Available',
    });
    expect(await diskIn(at(`${name}-image-pvc`), raw)).toBe('identical');
  });

  it('that is deleted leaves neither claims nor volumes', async () => {
    await kube.create(images, anImage(at('deleted'), url));
    await untilImage(at('deleted'));
    const file = await fileOf(at('deleted-image-pvc'));
    await kube.delete(images, at('deleted'));
    await untilGone(kube, images, at('deleted'), 60);
    await untilGone(kube, persistentVolumeClaims, at('deleted-image-pvc'), 60);
    await expect
      .poll(
        () =>
          stat(file).then(
            () => 'there',
            () => 'gone',
          ),
        { timeout: 60_000 },
      )
      .toBe('gone');
  });
});

const atOnce = { [cdiAnnotations.immediateBinding]: 'true' };
const noChange = async (_name: string): Promise<void> => undefined;

/** Every pod of ours is made again, as for an upgrade, while the disk is being written. */
const replaceBullion = async (name: string): Promise<void> => {
  const place = ['-n', 'bullion-system'];
  await untilStatus(kube, dataVolumes, at(name), ({ phase }) => phase === 'ImportInProgress', 120);
  if (shape === 'knative') await replaceRevisions();
  const workloads = shape === 'knative' ? ['deployment/admission'] : ['deployment'];
  await kubectl('rollout', 'restart', ...workloads, ...place);
  await kubectl('rollout', 'status', ...workloads, ...place, '--timeout=240s');
};

/** Deployments of revisions are Knative's: a change of the template of a Service makes another revision. */
const replaceRevisions = async (): Promise<void> => {
  const place = ['-n', 'bullion-system'];
  const annotations = { 'bullion.test/replaced': new Date().toISOString() };
  const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
  const names = (await kubectl('get', 'ksvc', '-o', 'name', ...place)).trim().split('\n');
  for (const name of names) await kubectl('patch', name, '--type=merge', '-p', patch, ...place);
  await kubectl('wait', 'ksvc', '--all', '--for=condition=Ready', '--timeout=240s', ...place);
};

describe.each(['Block', 'Filesystem'] as const)('a DataVolume of a %s volume', (volumeMode) => {
  const mode = volumeMode.toLowerCase();
  const storage = (storageClassName: string) => ({
    volumeMode,
    storageClassName,
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: `${diskMib}Mi` } },
  });
  const untilDone = (name: string) => untilStatus(kube, dataVolumes, at(name), isOver, 120);

  it('is imported', async () => {
    const name = `import-${mode}`;
    await kube.create(
      dataVolumes,
      aDataVolume(name, { source: { http: { url } }, storage: storage('local') }, {}, namespace),
    );
    expect(await timed(`a DataVolume, ${volumeMode}`, () => untilDone(name))).toMatchObject({ phase: 'Succeeded' });
    expect(await diskIn(at(name), raw)).toBe('identical');
  });

  it.each([
    ['waits', 'for its first consumer is imported when there is one, and that', {}, noChange],
    ['hurries', 'for none is imported, and a pod that is there before', atOnce, noChange],
    ['endures', 'that Bullion is replaced is imported, and its consumer', {}, replaceBullion],
  ])('that %s %s sees the whole disk', async (how, _what, marks, change) => {
    const name = `${how}-${mode}`;
    const isBlock = volumeMode === 'Block';
    const args = ['digest', isBlock ? '/dev/volume' : '/volume/disk.img'];
    const spec = { source: { http: { url: mediumUrl } }, storage: storage('local-wffc') };
    await kube.create(dataVolumes, aDataVolume(name, spec, marks, namespace));
    const digest = createHash('sha256').update(await readFile(raw));
    const consumer = probePod({ key: at(`first-${name}`), args, claim: name, isBlock });
    const [output] = await Promise.all([outputOf(consumer, 300), change(name)]);
    expect(output).toBe(`${digest.digest('hex')}\n`);
    expect(await untilDone(name)).toMatchObject({ phase: 'Succeeded' });
    const { uid } = (await kube.get(dataVolumes, at(name)))!.metadata;
    await untilGone(kube, persistentVolumeClaims, at(`prime-${uid}`), 60);
    await untilGone(kube, pods, at(consumer.metadata.name), 60);
    expect(await diskIn(at(name), raw)).toBe('identical');
  });

  it('is cloned', async () => {
    const name = `clone-${mode}`;
    const source = { pvc: { namespace, name: `import-${mode}` } };
    await kube.create(dataVolumes, aDataVolume(name, { source, storage: storage('local') }, {}, namespace));
    expect(await untilDone(name)).toMatchObject({ phase: 'Succeeded' });
    expect(await diskIn(at(name), raw)).toBe('identical');
  });
});

describe('a file', () => {
  it('is uploaded with curl by an account with the role `edit`', async () => {
    const image = harvesterImageKind.type;
    await kube.create(image, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineImage',
      metadata: at('sent'),
      spec: { backend: 'csi', displayName: 'sent', sourceType: 'upload', targetStorageClassName: 'local', retry: 3 },
    });
    const token = await editorToken(namespace, 'uploader');
    const { size } = await stat(qcow2);
    const address = `${await transferUrl()}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/sent?action=upload&size=${size}`;
    await run('curl', [
      '-sS',
      '--fail-with-body',
      '-X',
      'POST',
      '-T',
      qcow2,
      '-H',
      `Authorization: Bearer ${token}`,
      address,
    ]);
    const isImported = ({
      conditions = [],
    }: {
      readonly conditions?: readonly { readonly type: string; readonly status: string }[] | undefined;
    }) => conditions.some(({ type, status }) => type === 'Imported' && status === 'True');
    await untilStatus(kube, image, at('sent'), isImported, 120);
    const uid = (await kube.get(image, at('sent')))?.metadata.uid;
    expect(await diskIn(at(`vmi-${uid}`), raw)).toBe('identical');
  });

  it('is uploaded in pieces by `bullion upload`, and downloaded by `bullion download`', async () => {
    const where = ['-n', namespace, '--kubeconfig', paths.kubeconfig, '--transfer-url', await transferUrl()];
    await run(process.execPath, [
      'cli/main.ts',
      'upload',
      'pieces',
      qcow2,
      '--kind',
      'datavolume',
      '--storage-class',
      'local',
      ...where,
    ]);
    expect(await untilStatus(kube, dataVolumes, at('pieces'), isOver, 120)).toMatchObject({ phase: 'Succeeded' });
    expect(await diskIn(at('pieces'), raw)).toBe('identical');
    const file = join(dir, 'downloaded.qcow2');
    await run(process.execPath, ['cli/main.ts', 'download', 'pieces', '--kind', 'datavolume', '-o', file, ...where]);
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', raw, file])).resolves.toBeDefined();
  });
});

it('a DataImportCron follows a web server, and its DataSource is ready', async () => {
  await kube.create(dataImportCronKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: at('golden'),
    spec: {
      schedule: '0 */12 * * *',
      managedDataSource: 'golden',
      template: {
        spec: { source: { http: { url } }, storage: { resources: { requests: { storage: `${diskMib}Mi` } } } },
      },
    },
  });
  const isReady = (conditions: readonly { readonly type: string; readonly status: string }[] = []): boolean =>
    conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  const source = await until(kube, dataSourceKind.type, at('golden'), (now) => isReady(now?.status?.conditions), 180);
  expect(await diskIn(at(source?.spec.source.pvc?.name ?? ''), raw)).toBe('identical');
});
