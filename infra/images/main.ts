// `npm run images [-- --push <registry URL>/<prefix>:<tag>]`: builds the images into dist/images, without a Docker daemon.
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildBundles, bundleDir } from '#infra/bundle/build.ts';
import { buildImage, imageKinds } from '#infra/images/image.ts';
import { pushImage } from './layout.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const usage = 'npm run images [-- --push http://registry.example:5000/bullion:v1]\n';

const { values } = parseArgs({ options: { push: { type: 'string' }, help: { type: 'boolean' } } });
const target = values.push === undefined ? undefined : /^(https?:\/\/[^/]+)\/(.+):([\w.-]+)$/.exec(values.push);
if (values.help === true || target === null) {
  process.stderr.write(usage);
  process.exit(values.help === true ? 0 : 64);
}
await buildBundles();
for (const kind of imageKinds) {
  const outDir = join(root, 'dist', 'images', kind.name);
  const image = await buildImage(kind, { bundleDir, outDir, cacheDir: join(root, '.cache', 'debian') });
  process.stdout.write(`bullion/${kind.name} ${image.manifest.digest}\n  ${image.layoutDir}\n  ${image.sbomFile}\n`);
  if (target === undefined) continue;
  const [, registry = '', prefix = '', tag = ''] = target;
  const repository = `${prefix}/${kind.name}`;
  await pushImage({ ...image, registry, repository, tag });
  process.stdout.write(`  pushed: ${registry}/${repository}:${tag}\n`);
}
