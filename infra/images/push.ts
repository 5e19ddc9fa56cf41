// An OCI layout into a registry, over its HTTP API. Called by `npm run images -- --push` and its test.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Descriptor } from '#infra/images/layout.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

export interface PushOptions {
  readonly layoutDir: string;
  readonly manifest: Descriptor;
  /** Such as `http://127.0.0.1:5000`. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

/** Blobs that are there already are not sent again. Throws Unavailable with the registry's words. */
export const pushImage = async ({ layoutDir, manifest, registry, repository, tag }: PushOptions): Promise<void> => {
  const base = `${registry}/v2/${repository}`;
  const blob = (digest: string) => readFile(join(layoutDir, 'blobs', 'sha256', digest.replace('sha256:', '')));
  const text = await blob(manifest.digest);
  const { config, layers } = JSON.parse(text.toString()) as Manifest;
  for (const { digest } of [config, ...layers]) {
    if ((await fetch(`${base}/blobs/${digest}`, { method: 'HEAD' })).ok) continue;
    const started = await expectOk(await fetch(`${base}/blobs/uploads/`, { method: 'POST' }), 'start an upload');
    const target = new URL(started.headers.get('location') ?? '', registry);
    target.searchParams.set('digest', digest);
    const headers = { 'content-type': 'application/octet-stream' };
    await expectOk(await fetch(target, { method: 'PUT', headers, body: await blob(digest) }), `take ${digest}`);
  }
  const headers = { 'content-type': manifest.mediaType };
  await expectOk(await fetch(`${base}/manifests/${tag}`, { method: 'PUT', headers, body: text }), `take ${tag}`);
};

const expectOk = async (response: Response, what: string): Promise<Response> => {
  if (response.ok) return response;
  throw new Unavailable(`the registry would not ${what}: ${response.status} ${await response.text()}`);
};
