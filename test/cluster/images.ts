// The two images, built once for each state of the sources, and loaded into the node. Called by main.ts.
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buildBundles } from '#infra/bundle/build.ts';
import { buildImage, imageKinds } from '#infra/images/image.ts';
import { repositoryDir } from '#infra/local/manifests.ts';
import { importLayout } from '#local-cluster/node/images.ts';

const cacheDir = join(repositoryDir, '.cache');
const imagesDir = join(cacheDir, 'images');
const { version } = JSON.parse(readFileSync(join(repositoryDir, 'package.json'), 'utf8')) as {
  readonly version: string;
};

const sources = [
  '{functions,events,shared,infra}/**/*.{ts,css,js,svg}',
  'local-cluster/{broker,ping}/*.ts',
  'package-lock.json',
] as const;

const digestOfSources = (): string => {
  const digest = createHash('sha256');
  for (const file of globSync([...sources], { cwd: repositoryDir }).toSorted())
    if (!file.endsWith('.test.ts')) digest.update(`${file}\n`).update(readFileSync(join(repositoryDir, file)));
  return digest.digest('hex').slice(0, 16);
};

/** Folder with a folder for each image. */
export const ensureImages = async (report: (line: string) => void): Promise<string> => {
  const folder = join(imagesDir, digestOfSources());
  if (existsSync(folder)) return folder;
  report('building the images');
  await rm(imagesDir, { recursive: true, force: true });
  const bundleDir = join(imagesDir, 'functions');
  await buildBundles(bundleDir);
  for (const kind of imageKinds) {
    const outDir = join(`${folder}.part`, kind.name);
    // Nothing is sent over a network: packed fast.
    await buildImage(kind, { bundleDir, outDir, cacheDir: join(cacheDir, 'debian'), level: 1 });
    for (const unpacked of ['system', 'application']) await rm(join(outDir, unpacked), { recursive: true });
  }
  await rename(`${folder}.part`, folder);
  return folder;
};

export const loadImages = async (folder: string, socket: string): Promise<void> => {
  for (const { name } of imageKinds)
    await importLayout(socket, join(folder, name, 'layout'), `docker.io/bullion/${name}:${version}`);
};
