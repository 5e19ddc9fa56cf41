import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiServer, createApiServer } from './server.ts';

const hasKubectl = (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'kubectl')));
if (!hasKubectl) console.warn('kubectl is not on the PATH: its tests against the embedded API server are skipped');

const run = promisify(execFile);

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', kind: 'Gadget', shortNames: ['gd'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { size: { type: 'integer', default: 3, description: 'How big it is.' } },
              },
            },
          },
        },
      },
    ],
  },
};

describe.runIf(hasKubectl)('kubectl against the embedded API server', () => {
  let folder = '';
  let server: ApiServer;

  const kubectl = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('kubectl', ['--kubeconfig', server.kubeconfigPath, '--cache-dir', folder, ...args]);
    return stdout;
  };
  /** The error output of a failing kubectl. */
  const failing = async (...args: string[]): Promise<string> => {
    const failure = await kubectl(...args).then(
      (stdout) => ({ stderr: `no failure: ${stdout}` }),
      (error: { stderr: string }) => error,
    );
    return failure.stderr;
  };
  const manifest = async (name: string, object: unknown): Promise<string> => {
    const file = join(folder, `${name}.json`);
    await writeFile(file, JSON.stringify(object));
    return file;
  };
  const configMap = (name: string, data: Record<string, string>) =>
    manifest(name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kubectl-'));
    server = await createApiServer({ dataDir: join(folder, 'data') });
    await kubectl('apply', '-f', await manifest('definition', definition));
    await kubectl('wait', '--for=condition=Established', 'crd/gadgets.example.com', '--timeout=10s');
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('apply creates, changes, and does not touch unchanged objects', async () => {
    const file = await configMap('applied', { a: '1' });
    expect(await kubectl('apply', '-f', file)).toBe('configmap/applied created\n');
    expect(await kubectl('apply', '-f', file)).toBe('configmap/applied unchanged\n');
    await configMap('applied', { a: '2' });
    expect(await kubectl('apply', '-f', file)).toBe('configmap/applied configured\n');
    expect(await kubectl('get', 'cm', 'applied', '-o', 'jsonpath={.data.a}')).toBe('2');
  });

  test('server-side apply reports the managers of conflicting fields', async () => {
    const file = await configMap('shared', { a: '1' });
    expect(await kubectl('apply', '--server-side', '--field-manager=one', '-f', file)).toContain('serverside-applied');
    await configMap('shared', { a: '2' });
    const refused = await failing('apply', '--server-side', '--field-manager=two', '-f', file);
    expect(refused).toContain('conflict with "one": .data.a');
    expect(await kubectl('apply', '--server-side', '--field-manager=two', '--force-conflicts', '-f', file)).toContain(
      'serverside-applied',
    );
  });

  test('apply of an unknown field is rejected with its path', async () => {
    const file = await manifest('unknown', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, dta: {} });
    expect(await failing('apply', '-f', file)).toContain('unknown field "dta"');
  });

  test('diff shows what would change', async () => {
    const file = await configMap('differing', { a: '1' });
    await kubectl('apply', '-f', file);
    await configMap('differing', { a: '2' });
    const { stdout } = await kubectl('diff', '-f', file).then(
      () => ({ stdout: '' }),
      (error: { stdout: string }) => error,
    );
    expect(stdout).toMatch(/^-\s+a: "1"\n\+\s+a: "2"/m);
  });

  test('get prints tables, wide tables, and YAML', async () => {
    const gadget = { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'g' }, spec: {} };
    await kubectl('apply', '-f', await manifest('gadget', gadget));
    expect(await kubectl('get', 'gd')).toMatch(/^NAME\s+SIZE\ng\s+3\n$/);
    expect(await kubectl('get', 'ns', 'default', '-o', 'wide')).toMatch(
      /^NAME\s+STATUS\s+AGE\ndefault\s+Active\s+\d+s\n$/,
    );
    expect(await kubectl('get', 'gadget', 'g', '-o', 'yaml')).toContain('size: 3');
    expect(await kubectl('get', 'gadget', '--show-labels', '-A')).toMatch(/^NAMESPACE\s+NAME\s+SIZE\s+LABELS/);
  });

  test('get -w shows changes as they happen', async () => {
    await kubectl('create', 'configmap', 'watched');
    const args = ['--kubeconfig', server.kubeconfigPath, 'get', 'cm', 'watched', '-w', '--no-headers'];
    const watching = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines: string[] = [];
    const reader = createInterface({ input: watching.stdout });
    reader.on('line', (line) => lines.push(line));
    await once(reader, 'line');
    const next = once(reader, 'line');
    await kubectl('patch', 'cm', 'watched', '--type=merge', '-p', '{"data":{"a":"1"}}');
    await next;
    watching.kill();
    await once(watching, 'exit');
    expect(lines.map((line) => line.split(/\s+/).slice(0, 2))).toEqual([
      ['watched', '0'],
      ['watched', '1'],
    ]);
  });

  test('create, label, annotate, describe and delete', async () => {
    expect(await kubectl('create', 'job', 'j', '--image=busybox:1', '--', 'true')).toBe('job.batch/j created\n');
    expect(await kubectl('label', 'job', 'j', 'a=b')).toBe('job.batch/j labeled\n');
    expect(await kubectl('annotate', 'job', 'j', 'c=d')).toBe('job.batch/j annotated\n');
    const described = await kubectl('describe', 'job', 'j');
    expect(described).toMatch(/Labels:\s+a=b/);
    expect(described).toMatch(/Image:\s+busybox:1/);
    expect(await kubectl('delete', 'job', 'j', '--wait=true')).toBe('job.batch "j" deleted\n');
    expect(await failing('get', 'job', 'j')).toContain('jobs.batch "j" not found');
  });

  test('a strategic patch of a custom resource is rejected, a merge patch is not', async () => {
    const gadget = { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'patched' }, spec: {} };
    await kubectl('apply', '-f', await manifest('patched', gadget));
    expect(await failing('patch', 'gd', 'patched', '-p', '{"spec":{"size":7}}')).toContain('is not supported');
    expect(await failing('patch', 'gd', 'patched', '--type=merge', '-p', '{"spec":{"size":"x"}}')).toContain(
      'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    );
    expect(await kubectl('patch', 'gd', 'patched', '--type=merge', '-p', '{"spec":{"size":7}}')).toContain('patched');
  });

  test('explain and api-resources include custom resources', async () => {
    expect(await kubectl('explain', 'gadget.spec.size')).toContain('How big it is.');
    expect(await kubectl('explain', 'pod.spec.containers.image')).toContain('FIELD: image <string>');
    expect(await kubectl('api-resources', '--api-group=example.com', '--no-headers')).toMatch(
      /^gadgets\s+gd\s+example.com\/v1\s+true\s+Gadget\n$/,
    );
  });

  test('auth can-i answers according to the roles of a service account', async () => {
    await kubectl('create', 'serviceaccount', 'robot');
    await kubectl('create', 'role', 'reader', '--verb=get', '--resource=configmaps');
    await kubectl('create', 'rolebinding', 'reading', '--role=reader', '--serviceaccount=default:robot');
    const token = (await kubectl('create', 'token', 'robot')).trim();
    const as = ['--server', server.url, '--token', token, '--kubeconfig', '/dev/null', '--insecure-skip-tls-verify'];
    const can = async (...args: string[]): Promise<string> =>
      (
        await run('kubectl', ['auth', 'can-i', ...args, ...as]).catch((error: { stdout: string }) => error)
      ).stdout.trim();
    expect(await can('get', 'configmaps')).toBe('yes');
    expect(await can('delete', 'configmaps')).toBe('no');
    expect(await kubectl('auth', 'can-i', '*', '*')).toBe('yes\n');
  });

  test('delete waits for finalizers', async () => {
    const held = { name: 'held', finalizers: ['example.com/hold'] };
    await kubectl('apply', '-f', await manifest('held', { apiVersion: 'v1', kind: 'ConfigMap', metadata: held }));
    const deleting = kubectl('delete', 'cm', 'held', '--timeout=20s');
    await kubectl('wait', '--for=jsonpath={.metadata.deletionTimestamp}', 'cm/held', '--timeout=10s');
    await kubectl('patch', 'cm', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
    expect(await deleting).toBe('configmap "held" deleted\n');
  });
});
