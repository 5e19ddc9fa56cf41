// `npm run release [-- --registry registry.example/bullion --tag v1 --to dist --download https://downloads.example/v1]`: one file for each form, for
// `kubectl apply -f`; with --download, also archives of the executables and the manifest with which krew installs them.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ShapeName, buildRelease, shapes } from '#infra/generate/render.ts';
import { writeKrew } from '#infra/release/krew.ts';
import { release } from '#shared/api/names.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    registry: { type: 'string', default: 'bullion' },
    tag: { type: 'string', default: release },
    to: { type: 'string', default: join(root, 'dist') },
    executables: { type: 'string', default: join(root, 'dist/executables') },
    download: { type: 'string' },
  },
});
await mkdir(values.to, { recursive: true });
for (const shape of Object.keys(shapes) as readonly ShapeName[]) {
  const path = join(values.to, `bullion-${shape}.yaml`);
  await writeFile(path, buildRelease(shape, values));
  process.stdout.write(`${path}\n`);
}
if (values.download !== undefined) {
  const folders = { executables: values.executables, license: root, to: values.to };
  const { files, missing } = await writeKrew(folders, release, values.download.replace(/\/+$/, ''));
  for (const file of files) process.stdout.write(`${file}\n`);
  for (const platform of missing)
    process.stderr.write(
      `no executable for ${platform} in ${values.executables}: npm run package -- --executables makes those of Linux on Linux, and that of a Mac on the Mac\n`,
    );
  if (files.length === 0) process.exitCode = 1;
}
