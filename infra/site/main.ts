// `npm run docs [-- --to dist/docs] [-- --source https://git.example/bullion/blob/main]`: the documents as a site that needs no server of its own.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import packageFile from '../../package.json' with { type: 'json' };
import { buildSite } from './build.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values } = parseArgs({
  options: {
    to: { type: 'string', default: fileURLToPath(new URL('../../dist/docs', import.meta.url)) },
    source: { type: 'string' },
  },
});
try {
  const pages = await buildSite({ root, outDir: values.to, version: packageFile.version, source: values.source });
  process.stdout.write(`${pages.length} pages in ${values.to}; open ${values.to}/index.html\n`);
} catch (error) {
  process.stderr.write(`docs: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
