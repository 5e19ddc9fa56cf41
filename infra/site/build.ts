// The documents as a site: pages, pictures, style and search. Throws if a link leads nowhere. Called by main.ts and tests.
import { existsSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { frame, navigationOf, style } from './layout.ts';
import { collectPages, nameAnchorOf, placeOf } from './pages.ts';
import { explainedIn, reasonsDocument, reasonsText } from './reasons.ts';
import { type SitePage, renderPage } from './render.ts';
import { indexScript, searchScript } from './search.ts';

export interface SiteOptions {
  /** Of the repository. */
  readonly root: string;
  readonly outDir: string;
  readonly version: string;
  readonly source?: string | undefined;
}

/** What is wrong with links and pictures, one line each. */
export const faultsOf = (pages: readonly SitePage[], exists: (path: string) => boolean): readonly string[] => {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  return pages.flatMap(({ path, references, pictures }) => [
    ...references.flatMap(({ link, target, anchor }) => {
      const page = byPath.get(target);
      if (page === undefined) return [`${path}: ${link} does not exist`];
      return anchor === '' || page.anchors.has(anchor) ? [] : [`${path}: ${link} has no such heading or name`];
    }),
    ...pictures.filter((picture) => !exists(picture)).map((picture) => `${path}: there is no picture ${picture}`),
  ]);
};

/** Empties `outDir` and fills it. */
export const buildSite = async ({ root, outDir, version, source }: SiteOptions): Promise<readonly SitePage[]> => {
  const documents = collectPages(root);
  const exists = (path: string): boolean => !path.startsWith('..') && existsSync(join(root, path));
  const around = { isPage: (path: string) => documents.has(path), exists, source };
  const reasons = reasonsText(explainedIn(documents));
  const pages = [
    ...[...documents].map(([path, text]) => renderPage(path, text, around)),
    renderPage(reasonsDocument, reasons, { ...around, anchorOf: nameAnchorOf }),
  ];
  const faults = faultsOf(pages, exists);
  if (faults.length > 0) throw new Error(`links of the documents lead nowhere:\n${faults.join('\n')}`);
  const navigation = navigationOf(documents.get('docs/README.md') ?? '');
  const write = async (place: string, text: string): Promise<void> => {
    await mkdir(dirname(join(outDir, place)), { recursive: true });
    await writeFile(join(outDir, place), text);
  };
  await rm(outDir, { recursive: true, force: true });
  await Promise.all([
    ...pages.map((page) => write(placeOf(page.path), frame(page, navigation, version))),
    ...pages.flatMap(({ pictures }) => pictures.map((path) => cp(join(root, path), join(outDir, path)))),
    write('style.css', style),
    write('search.js', searchScript),
    write('search-index.js', indexScript(pages.flatMap(({ sections }) => sections))),
  ]);
  return pages;
};
