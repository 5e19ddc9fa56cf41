// `npm run release -- [--registry registry.example/bullion] [--tag v1] [--to dist]`: one file for each shape, for `kubectl apply -f`.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ShapeName, buildRelease, shapes } from '#infra/generate/render.ts';
import { release } from '#shared/api/names.ts';

const { values } = parseArgs({
  options: {
    registry: { type: 'string', default: 'bullion' },
    tag: { type: 'string', default: release },
    to: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
  },
});
await mkdir(values.to, { recursive: true });
for (const shape of Object.keys(shapes) as readonly ShapeName[]) {
  const path = join(values.to, `bullion-${shape}.yaml`);
  await writeFile(path, buildRelease(shape, values));
  process.stdout.write(`${path}\n`);
}
