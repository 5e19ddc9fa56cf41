// What a side has: digests, as a file that the other side saves a smaller bundle by.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { openRegistry } from '#cli/bundle/access.ts';
import { openArchive } from '#cli/bundle/archive.ts';
import { readBundle } from '#cli/bundle/check.ts';
import type { Values } from '#cli/command.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isDigest, parseReference } from '#shared/clients/registry/reference.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import { populationOf } from '#shared/populate/population.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

const Have = z.object({
  version: z.literal(1),
  digests: z.array(z.string().regex(/^sha(256|512):[0-9a-f]{64,128}$/)).max(1_000_000),
});

export const readHave = async (path: string | undefined): Promise<ReadonlySet<string>> => {
  if (path === undefined) return new Set();
  try {
    return new Set(Have.parse(JSON.parse(await readFile(path, 'utf8'))).digests);
  } catch (error) {
    const why = error instanceof z.ZodError || error instanceof SyntaxError ? 'is not one' : messageOf(error);
    throw new InvalidInput(`--have takes a file that "bullion bundle have" has written: ${path} ${why}`, [], {
      cause: error,
    });
  }
};

export const haveText = (digests: Iterable<string>): string =>
  `${JSON.stringify({ version: 1, digests: [...new Set(digests)].toSorted() }, undefined, 2)}\n`;

type Kube = Pick<KubeClient, 'listAll'>;

const importedBy = ({ status }: DataImportCron): string | undefined =>
  status?.currentImports?.find((one) => one.DataVolumeName === status.lastImportedPVC?.name)?.Digest;

const pulledBy = ({ spec, status }: DataVolume): string | undefined =>
  status?.phase === 'Succeeded' ? spec.source?.registry?.url?.split('@')[1] : undefined;

/** Files and images that volumes of a namespace were filled from. */
export const clusterDigests = async (kube: Kube, namespace: string): Promise<ReadonlySet<string>> => {
  const claims = await allIfServed(kube, persistentVolumeClaims, { namespace });
  const files = claims.flatMap((claim) => populationOf(claim)?.digests['sha256'] ?? []).map((hex) => `sha256:${hex}`);
  const volumes = await allIfServed(kube, dataVolumeKind.type, { namespace });
  const crons = await allIfServed(kube, dataImportCronKind.type, { namespace });
  const images = [...volumes.map(pulledBy), ...crons.map(importedBy)];
  return new Set([...files, ...images.flatMap((digest) => (digest !== undefined && isDigest(digest) ? [digest] : []))]);
};

/** A repository: each image that a tag names, and its blobs. */
const repositoryDigests = async (place: string, values: Values, signal: AbortSignal): Promise<readonly string[]> => {
  const image = parseReference(place);
  const { client, close } = await openRegistry(image, { values, signal });
  try {
    const digests: string[] = [];
    for (const tag of await client.tags(image)) {
      const manifest = await client.manifest({ host: image.host, repository: image.repository, tag });
      digests.push(manifest.digest);
      if (manifest.is === 'image')
        digests.push(manifest.image.config.digest, ...manifest.image.layers.map(({ digest }) => digest));
    }
    return digests;
  } finally {
    await close();
  }
};

const bundleDigests = async (path: string): Promise<readonly string[]> => {
  const archive = await openArchive(path);
  try {
    const { document } = await readBundle(archive);
    const disks = document.images.flatMap(({ disk, leftOut }) => [
      ...leftOut,
      ...(disk === undefined ? [] : [`sha256:${disk.sha256}`]),
    ]);
    return [...archive.blobs.keys(), ...disks];
  } finally {
    await archive.close();
  }
};

/** Of bundles that were loaded, and repositories. */
export const digestsOf = (place: string, values: Values, signal: AbortSignal): Promise<readonly string[]> =>
  /^(oci|docker):\/\//.test(place) ? repositoryDigests(place, values, signal) : bundleDigests(place);
