// KubeVirt's own `virtctl`, where `VIRTCTL` is the path of one: a token from the upload API behind a real API server, and a file through the transfer function's Service.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { repositoryDir, systemNamespace } from '#infra/local/manifests.ts';
import { applyObjects } from '#local-cluster/install.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { virtctl } from '#test/support/virtctl.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { diskIn, kube, kubectl, paths, run, shape, timed, transferUrl } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'virtctl';
const api = 'v1beta1.upload.cdi.kubevirt.io';

if (virtctl === undefined) console.warn("skipped: set VIRTCTL to the path of KubeVirt's virtctl");

/** What `kubectl apply -k` of the upload API applies, with a certificate of the test's: the node has no cert-manager. */
const installUploadApi = async (dir: string): Promise<void> => {
  const [cert, key] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
  const host = `upload-api.${systemNamespace}.svc`;
  const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-days', '2'];
  const subject = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`];
  await run('openssl', ['req', '-x509', ...fresh, '-out', cert, ...subject]);
  await kubectl('create', 'secret', 'tls', 'upload-api-tls', '-n', systemNamespace, `--cert=${cert}`, `--key=${key}`);
  const from = (path: string): string => relative(join(dir, 'overlay'), join(repositoryDir, 'infra', path));
  const overlay =
    shape === 'single'
      ? { resources: [from('overlays/single')], components: [from('components/single-upload-api')] }
      : { resources: [from('apis')] };
  await mkdir(join(dir, 'overlay'));
  await writeFile(join(dir, 'overlay/kustomization.yaml'), JSON.stringify(overlay));
  const rendered = parseAllDocuments(await kubectl('kustomize', join(dir, 'overlay')));
  const caBundle = (await readFile(cert)).toString('base64');
  const objects = rendered
    .map((document) => document.toJS() as KubeObject & { readonly spec?: object })
    .filter(({ apiVersion }) => !apiVersion.startsWith('cert-manager.io'))
    .map((object) => (object.kind === 'APIService' ? { ...object, spec: { ...object.spec, caBundle } } : object));
  await applyObjects(kube, objects);
};

describe.skipIf(virtctl === undefined)('virtctl', { timeout: 900_000 }, () => {
  const { dir } = setUp({ [namespace]: {} });
  const raw = join(dir, 'disk.raw');
  const qcow2 = join(dir, 'disk.qcow2');
  beforeAll(async () => {
    await writeBootDisk(raw, { bytes: 512 * mib, dataBytes: 320 * mib });
    await run('qemu-img', ['convert', '-O', 'qcow2', raw, qcow2]);
    await installUploadApi(dir);
    await kubectl('wait', `apiservice/${api}`, '--for=condition=Available', '--timeout=600s');
  });

  it.each([
    ['dv', 'block', '512Mi'],
    // A claim of its own is as large as it is asked for, its file system included.
    ['pvc', 'filesystem', '640Mi'],
  ] as const)('uploads more than 300 MiB into a %s of mode %s', async (type, mode, size) => {
    const name = `of-${type}`;
    const where = ['-n', namespace, '--kubeconfig', paths.kubeconfig, `--uploadproxy-url=${await transferUrl()}`];
    const volume = [`--size=${size}`, '--storage-class=local', `--volume-mode=${mode}`];
    const { stdout } = await timed(`virtctl image-upload ${type}`, () =>
      run(virtctl ?? '', ['image-upload', type, name, `--image-path=${qcow2}`, ...volume, ...where]),
    );
    expect(stdout).toContain('completed successfully');
    expect(await diskIn({ namespace, name }, raw)).toBe('identical');
  });
});
