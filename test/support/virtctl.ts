// `virtctl image-upload` according to its sources (KubeVirt 1.x): the same requests, in the same order, with the same delays and messages. To
// use the real one instead: `VIRTCTL=/path/to/virtctl npx vitest run test/flows/virtctl.test.ts`.
import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { kubeEvents, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { ResourceType, KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

const cdi = 'cdi.kubevirt.io/storage';

export interface ImageUpload {
  readonly kube: KubeClient;
  readonly kubeconfigPath: string;
  readonly namespace: string;
  readonly type: 'dv' | 'pvc';
  readonly name: string;
  /** --image-path, or --archive-path. */
  readonly file: string;
  /** --uploadproxy-url. Default: read from the cluster. */
  readonly proxyUrl?: string;
  /** Default: --no-create. */
  readonly size?: string;
  readonly storageClass?: string;
  readonly volumeMode?: 'block' | 'filesystem';
  readonly isArchive?: boolean;
  readonly forceBind?: boolean;
  readonly insecure?: boolean;
  readonly dataSource?: boolean;
  readonly waitSeconds?: number;
}

/** Milliseconds between two checks; 2 s in the original. */
const lookMs = 200;

const until = async (seconds: number, what: string, look: () => Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + seconds * 1000;
  while (!(await look())) {
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await sleep(lookMs);
  }
};

const claimOf = ({ kube, namespace, name }: ImageUpload) => kube.get(persistentVolumeClaims, { namespace, name });
const marksOf = async (upload: ImageUpload) => (await claimOf(upload))?.metadata.annotations ?? {};

const requests = (storage: string) => ({ resources: { requests: { storage } } });

const createVolume = (upload: ImageUpload, size: string): Promise<unknown> => {
  const { kube, namespace, name, storageClass, volumeMode, isArchive = false, forceBind = false } = upload;
  const mode = volumeMode === undefined ? {} : { volumeMode: volumeMode === 'block' ? 'Block' : 'Filesystem' };
  const spec = {
    ...requests(size),
    ...mode,
    ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
  };
  const bind = forceBind ? { [`${cdi}.bind.immediate.requested`]: '' } : {};
  const contentType = isArchive ? 'archive' : 'kubevirt';
  if (upload.type === 'pvc')
    return kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace,
        name,
        labels: { 'cdi.kubevirt.io/applyStorageProfile': 'true' },
        annotations: { [`${cdi}.upload.target`]: '', [`${cdi}.contentType`]: contentType, ...bind },
      },
      spec: { accessModes: ['ReadWriteOnce'], ...spec } as never,
    });
  return kube.create(dataVolumeKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { namespace, name, annotations: bind },
    spec: { source: { upload: {} }, contentType, storage: spec },
  } as DataVolume);
};

/** Created if missing; an existing one must match. */
const getOrCreate = async (upload: ImageUpload): Promise<void> => {
  const { kube, namespace, name, type, size } = upload;
  const claim = await claimOf(upload);
  if (claim === undefined) {
    if (size === undefined) throw new Error(`persistentvolumeclaims "${name}" not found`);
    await createVolume(upload, size);
    return;
  }
  if (type === 'dv' && (await kube.get(dataVolumeKind.type, { namespace, name })) === undefined)
    throw new Error(`No DataVolume is associated with the existing PVC ${namespace}/${name}`);
  const marks = claim.metadata.annotations ?? {};
  if (marks[`${cdi}.pod.phase`] === 'Succeeded')
    throw new Error(`PVC ${name} already successfully imported/cloned/updated`);
  const isTarget = marks[`${cdi}.upload.target`] !== undefined;
  if (size !== undefined && !isTarget) throw new Error(`PVC ${name} not available for upload`);
  if (upload.isArchive === true && marks[`${cdi}.contentType`] !== 'archive')
    throw new Error(`PVC ${name} does not have archive contentType annotation`);
  if (!isTarget) {
    const annotations = { ...marks, [`${cdi}.upload.target`]: '' };
    await kube.replace(persistentVolumeClaims, { ...claim, metadata: { ...claim.metadata, annotations } });
  }
};

/** Events that end the wait. */
const failOnEvents = async ({ kube, namespace, name }: ImageUpload): Promise<void> => {
  const { items } = await kube.list(kubeEvents, { namespace, fieldSelector: `involvedObject.name=${name}` });
  for (const { reason, involvedObject, message } of items) {
    if (involvedObject.kind === 'PersistentVolumeClaim' && reason === 'ProvisioningFailed')
      throw new Error(`provisioning failed: ${message}`);
    if (involvedObject.kind === 'DataVolume' && reason === 'ErrClaimNotValid')
      throw new Error(`claim not valid: ${message}`);
  }
};

const waitForServer = (upload: ImageUpload): Promise<void> =>
  until(upload.waitSeconds ?? 200, `PVC ${upload.name} upload pod to be ready`, async () => {
    if (upload.type === 'pvc') {
      const isReady = (await marksOf(upload))[`${cdi}.pod.ready`] === 'true';
      if (!isReady) await failOnEvents(upload);
      return isReady;
    }
    const { kube, namespace, name } = upload;
    const phase = (await kube.get(dataVolumeKind.type, { namespace, name }))?.status?.phase;
    if ((phase === 'WaitForFirstConsumer' || phase === 'PendingPopulation') && upload.forceBind !== true)
      throw new Error(
        `cannot upload to DataVolume in ${phase} phase, make sure the PVC is Bound, or use force-bind flag`,
      );
    if (phase !== 'UploadReady') await failOnEvents(upload);
    return phase === 'UploadReady';
  });

interface TokenRequest extends KubeObject {
  readonly spec: { readonly pvcName: string };
  readonly status?: { readonly token?: string };
}
const tokenRequests: ResourceType<TokenRequest> = {
  group: 'upload.cdi.kubevirt.io',
  version: 'v1beta1',
  kind: 'UploadTokenRequest',
  plural: 'uploadtokenrequests',
  namespaced: true,
};

const getToken = async ({ kube, namespace, name }: ImageUpload): Promise<string> => {
  const { status } = await kube.create(tokenRequests, {
    apiVersion: 'upload.cdi.kubevirt.io/v1beta1',
    kind: 'UploadTokenRequest',
    metadata: { name: 'token-for-virtctl', namespace },
    spec: { pvcName: name },
  });
  return status?.token ?? '';
};

const dispatcherFor = ({ insecure = false }: ImageUpload) =>
  new Agent({ connect: { rejectUnauthorized: !insecure }, headersTimeout: 0, bodyTimeout: 0 });

/** The whole file again after any status but 200, five times. */
const retries = 5;

const proxyUrlOf = async ({ kube, proxyUrl }: ImageUpload): Promise<string> => {
  if (proxyUrl !== undefined) return proxyUrl;
  const config = await kube.get(cdiConfigs, { name: 'config' });
  const url = config?.spec.uploadProxyURLOverride ?? config?.status?.uploadProxyURL;
  if (url === undefined) throw new Error('uploadproxy URL not found');
  return /^https?:/.test(url) ? url : `https://${url}`;
};

const send = async (upload: ImageUpload, proxyUrl: string, token: string): Promise<void> => {
  const dispatcher = dispatcherFor(upload);
  const headers = { authorization: `Bearer ${token}`, 'user-agent': 'Go-http-client/1.1' };
  const at = (path: string): string => `${proxyUrl}/v1beta1/${path}`;
  const head = await request(at('upload-async'), { method: 'HEAD', dispatcher, headers });
  const url = at(head.statusCode === 200 ? 'upload-async' : 'upload');
  const { size } = await stat(upload.file);
  let last = '';
  for (let attempt = 1; attempt <= retries; attempt++) {
    const answer = await request(url, {
      method: 'POST',
      dispatcher,
      body: createReadStream(upload.file),
      headers: { ...headers, 'content-type': 'application/octet-stream', 'content-length': String(size) },
    });
    const text = await answer.body.text();
    if (answer.statusCode === 200) return;
    last = `unexpected return value ${answer.statusCode}, ${text}`;
    await sleep(attempt * 25);
  }
  throw new Error(`error uploading image after ${retries} retries: ${last}`);
};

const createDataSource = ({ kube, namespace, name }: ImageUpload): Promise<unknown> =>
  kube.create(dataSourceKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: { namespace, name },
    spec: { source: { pvc: { namespace, name } } },
  });

/** The arguments of the command. */
const argumentsOf = (upload: ImageUpload): readonly string[] => {
  const { type, name, namespace, kubeconfigPath, file, isArchive, size, storageClass, volumeMode } = upload;
  const value = (flag: string, text: string | number | undefined) => (text === undefined ? [] : [`--${flag}=${text}`]);
  const option = (flag: string, isSet: boolean | undefined) => (isSet === true ? [`--${flag}`] : []);
  return [
    'image-upload',
    type,
    name,
    `--namespace=${namespace}`,
    `--kubeconfig=${kubeconfigPath}`,
    ...value(isArchive === true ? 'archive-path' : 'image-path', file),
    ...(size === undefined ? ['--no-create'] : [`--size=${size}`]),
    ...value('storage-class', storageClass),
    ...value('volume-mode', volumeMode),
    ...value('uploadproxy-url', upload.proxyUrl),
    ...value('wait-secs', upload.waitSeconds),
    ...option('force-bind', upload.forceBind),
    ...option('insecure', upload.insecure),
    ...option('datasource', upload.dataSource),
  ];
};

const runReal = (program: string, upload: ImageUpload): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, argumentsOf(upload), { stdio: ['ignore', 'pipe', 'pipe'] });
    const printed: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => printed.push(bytes));
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(Buffer.concat(printed).toString('utf8').trim())),
    );
  });

/** Path of the program; `undefined`: there is none. */
export const virtctl = process.env['VIRTCTL'];

/** Throws an Error with the output of the original. */
export const imageUpload = async (upload: ImageUpload): Promise<void> => {
  if (virtctl !== undefined) return runReal(virtctl, upload);
  await getOrCreate(upload);
  await waitForServer(upload);
  await send(upload, await proxyUrlOf(upload), await getToken(upload));
  if (upload.dataSource === true) await createDataSource(upload);
  await until(90, 'post upload processing to complete', async () => {
    return (await marksOf(upload))[`${cdi}.pod.phase`] === 'Succeeded';
  });
};
