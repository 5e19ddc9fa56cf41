// `npm run gen` writes the generated files; with --check it writes nothing and exits 1 with the name of every outdated file.
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { loadBlocks } from '#infra/generate/blocks.ts';
import { chartOutputs } from '#infra/generate/chart.ts';
import { explanationOutputs } from '#infra/generate/explanations.ts';
import { kustomizeOutputs } from '#infra/generate/kustomize.ts';
import { type Outputs, manifestOutputs } from '#infra/generate/outputs.ts';
import { renderBlocks } from '#infra/generate/readme.ts';

const root = new URL('../../', import.meta.url);
/** Folders with generated files only: files that are not generated any more are deleted. */
const ownedFolders = ['apis', 'base', 'crds', 'knative', 'rbac', 'webhooks', 'components', 'overlays', 'chart'].map(
  (name) => `infra/${name}`,
);

const readText = async (path: string): Promise<string | undefined> =>
  readFile(new URL(path, root), 'utf8').catch(() => undefined);

/** READMEs of every folder, and all of `docs/`. */
const listDocuments = async (): Promise<readonly string[]> => {
  const folders = ['functions', 'events', 'shared', 'infra', 'local-cluster', 'cli', 'test', 'docs'];
  const nested = await Promise.all(
    folders.map(async (folder) => {
      const files = await readdir(new URL(`${folder}/`, root), { recursive: true }).catch(() => []);
      const isDocument = (file: string): boolean => (folder === 'docs' ? /\.md$/ : /(^|\/)README\.md$/).test(file);
      return files.filter(isDocument).map((file) => `${folder}/${file}`);
    }),
  );
  return ['README.md', ...nested.flat()].filter((path) => !path.includes('node_modules'));
};

const documentOutputs = async (): Promise<Outputs> => {
  const blocks = await loadBlocks(root);
  const rendered = await Promise.all(
    (await listDocuments()).map(async (path) => {
      const text = await readText(path);
      return text === undefined ? [] : [[path, renderBlocks(text, blocks)] as const];
    }),
  );
  return Object.fromEntries(rendered.flat());
};

const loadExplanations = async (): Promise<Outputs> => {
  const names = await readdir(new URL('infra/runbooks/', root));
  const alerts = names.filter((name) => name !== 'README.md').map((name) => name.replace(/\.md$/, ''));
  const texts = await Promise.all(
    alerts.map(async (alert) => [alert, (await readText(`infra/runbooks/${alert}.md`)) ?? ''] as const),
  );
  return explanationOutputs((await readText('docs/reference.md')) ?? '', Object.fromEntries(texts));
};

const listStale = async (outputs: Outputs): Promise<readonly string[]> => {
  const found = await Promise.all(
    ownedFolders.map(async (folder) => {
      const files = await readdir(new URL(`${folder}/`, root), { recursive: true }).catch(() => []);
      return files.filter((file) => file.endsWith('.yaml')).map((file) => `${folder}/${file}`);
    }),
  );
  return found.flat().filter((path) => !(path in outputs));
};

const listChanged = async (outputs: Outputs): Promise<readonly string[]> => {
  const checked = await Promise.all(
    Object.entries(outputs).map(async ([path, content]) => ((await readText(path)) === content ? [] : [path])),
  );
  return checked.flat();
};

const write = async (path: string, content: string): Promise<void> => {
  const url = new URL(path, root);
  await mkdir(dirname(url.pathname), { recursive: true });
  await writeFile(url, content);
};

const manifests = manifestOutputs();
const whole = { ...manifests, ...kustomizeOutputs(manifests) };
const outputs = { ...whole, ...chartOutputs(whole), ...(await documentOutputs()), ...(await loadExplanations()) };
const stale = await listStale(outputs);
const changed = await listChanged(outputs);
if (process.argv.includes('--check')) {
  for (const path of [...changed, ...stale]) process.stderr.write(`not up to date: ${path}; run npm run gen\n`);
  process.exitCode = changed.length + stale.length === 0 ? 0 : 1;
} else {
  for (const path of changed) await write(path, outputs[path] ?? '');
  for (const path of stale) await rm(new URL(path, root));
  process.stdout.write(`${changed.length} written, ${stale.length} removed\n`);
}
