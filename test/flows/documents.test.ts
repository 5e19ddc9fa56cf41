// Manifests of the README and the guides, as a reader would apply them: each is sent to the local cluster, which must accept it.
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '#shared/api/object.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { kubectlWith } from '#test/support/admission-server.ts';
import { hasKubectl } from '#test/support/tools.ts';

const root = join(import.meta.dirname, '../..');
const guides = ['README.md', ...(await readdir(join(root, 'docs'))).map((name) => join('docs', name))];

interface Shown {
  readonly path: string;
  readonly name: string;
  readonly object: KubeObject;
}

/** The output of kustomize is for a cluster with a registry of its own (`infra/generate/rendered.test.ts`). */
const shown = (
  await Promise.all(
    guides.map(async (path): Promise<readonly Shown[]> => {
      const text = await readFile(join(root, path), 'utf8');
      // The first image is in a shell session, as its reader types it.
      const blocks = [...text.matchAll(/^(?:```yaml|\$ kubectl apply -f - <<END)\n([\s\S]*?)^(?:```|END)$/gm)];
      return blocks
        .flatMap(([, block = '']) => parseAllDocuments(block).map((document) => document.toJS() as KubeObject))
        .filter(({ kind }) => kind !== 'Kustomization')
        .map((object) => ({ path, name: `${object.kind} ${object.metadata.name ?? ''}`, object }));
    }),
  )
).flat();

describe.skipIf(!hasKubectl())('manifests of documents', { timeout: 300_000 }, () => {
  let cluster: TestCluster;
  let dir: string;
  beforeAll(async () => {
    cluster = await startTestCluster();
    dir = await mkdtemp(join(tmpdir(), 'bullion-documents-'));
  });
  afterAll(async () => {
    await cluster?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('exist', () => expect(shown.length).toBeGreaterThan(10));

  it.each(shown)('$path: $name', async ({ object }) => {
    const send = kubectlWith(cluster.kubeconfigPath, join(dir, 'cache'));
    const { stdout, stderr } = await send(['create', '--dry-run=server', '-f', '-'], object);
    expect({ stdout, stderr }).toMatchObject({ stdout: expect.stringContaining('created'), stderr: '' });
  });
});
