// Pushes an OCI layout to a registry, over its HTTP API. Called by `npm run images -- --push` and its test.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobDescriptor } from '#infra/images/layout.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

interface Manifest {
  readonly config: BlobDescriptor;
  readonly layers: readonly BlobDescriptor[];
}

export interface PushOptions {
  readonly layoutDir: string;
  readonly manifest: BlobDescriptor;
  /** Such as `http://127.0.0.1:5000`. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

/** Existing blobs are not sent again. Throws Unavailable with the registry's message. */
export const pushImage = async ({ layoutDir, manifest, registry, repository, tag }: PushOptions): Promise<void> => {
  const base = `${registry}/v2/${repository}`;
  const blob = (digest: string) => readFile(join(layoutDir, 'blobs', 'sha256', digest.replace('sha256:', '')));
  const text = await blob(manifest.digest);
  const { config, layers } = JSON.parse(text.toString()) as Manifest;
  for (const { digest } of [config, ...layers]) {
    const body = await blob(digest);
    if ((await send(`${base}/blobs/${digest}`, { method: 'HEAD' })).ok) continue;
    await attempt(async () => {
      const started = await expectOk(await send(`${base}/blobs/uploads/`, { method: 'POST' }), 'start an upload');
      const target = new URL(started.headers.get('location') ?? '', registry);
      target.searchParams.set('digest', digest);
      const headers = { 'content-type': 'application/octet-stream' };
      await expectOk(await fetch(target, { method: 'PUT', headers, body }), `take ${digest}`);
    });
  }
  const headers = { 'content-type': manifest.mediaType };
  await expectOk(await send(`${base}/manifests/${tag}`, { method: 'PUT', headers, body: text }), `take ${tag}`);
};

/** A registry closes connections that were idle while a layer was read; a request on such a connection is sent again. */
const attempt = async <T>(work: () => Promise<T>, left = 2): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (left === 0 || !(error instanceof TypeError)) throw error;
    return attempt(work, left - 1);
  }
};

const send = (url: string, init: RequestInit): Promise<Response> => attempt(() => fetch(url, init));

const expectOk = async (response: Response, what: string): Promise<Response> => {
  if (response.ok) return response;
  throw new Unavailable(`the registry failed to ${what}: ${response.status} ${await response.text()}`);
};
