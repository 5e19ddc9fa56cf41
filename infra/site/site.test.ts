// The documents as a site: each link leads somewhere, names of tables can be linked, the search finds them; in a browser where there is one.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildSite } from './build.ts';
import { navigationOf } from './layout.ts';
import { placeOf } from './pages.ts';
import { type SitePage, renderPage } from './render.ts';
import { reasonsDocument } from './reasons.ts';
import { find } from './search.ts';
import { reasonAddress } from '#shared/catalogue/reasons.ts';
import explanations from '../../cli/explanations.json' with { type: 'json' };
import { temporaryDirectory } from '#test/support/directory.ts';

const root = join(import.meta.dirname, '../..');
const outDir = join(temporaryDirectory(), 'site');
const around = {
  isPage: (path: string) => ['docs/page.md', 'docs/other.md'].includes(path),
  exists: (path: string) => path === 'shared/code.ts',
};
const render = (text: string, more: object = {}) => renderPage('docs/page.md', text, { ...around, ...more });

describe('a page', () => {
  it('has anchors of headings as GitHub makes them, and of names in first columns', () => {
    const { anchors, html, contents } = render(
      '# A\n\n## Two `words`\n\n## Two words\n\n| r | m |\n|---|---|\n| `Bad` `Worse` | no |\n',
    );
    expect([...anchors]).toEqual(['a', 'two-words', 'two-words-1', 'Bad', 'Worse']);
    expect(html).toContain('<h2 id="two-words">Two <code>words</code></h2>');
    expect(html).toMatch(/<td><a class="target" id="Bad"><\/a><a class="target" id="Worse"><\/a><code>Bad/);
    expect(contents.map(({ heading }) => heading)).toEqual(['Two words', 'Two words']);
  });

  it.each([
    ['[x](other.md#a)', '<a href="other.html#a">x</a>'],
    ['[x](#a)', '<a href="#a">x</a>'],
    ['[x](https://e.example/?a&b)', '<a href="https://e.example/?a&amp;b">x</a>'],
    ['[x](../shared/code.ts)', '<p>x</p>'],
    ['a <name> & <!-- gone -->', '<p>a &lt;name&gt; &amp; </p>'],
  ])('shows %s as %s', (text, html) => expect(render(text).html).toContain(html));

  it('leads to the page of reasons within the site, and has its anchors checked', () => {
    const { html, references } = render('[x](https://bullion.dev/reasons#ChecksumMismatch)');
    expect(html).toContain('<a href="../reasons/index.html#ChecksumMismatch">x</a>');
    expect(references).toMatchObject([{ target: reasonsDocument, anchor: 'ChecksumMismatch' }]);
  });

  it('links to code where the repository can be read', () =>
    expect(render('[x](../shared/code.ts)', { source: 'https://git.example/b' }).html).toContain(
      '<a href="https://git.example/b/shared/code.ts">x</a>',
    ));

  it.each([
    ['README.md', 'index.html'],
    ['docs/README.md', 'docs/index.html'],
    ['docs/cli.md', 'docs/cli.html'],
  ])('of %s is %s', (path, place) => expect(placeOf(path)).toBe(place));
});

describe('the site', () => {
  let pages: readonly SitePage[];
  beforeAll(async () => {
    pages = await buildSite({ root, outDir, version: '1.2.3' });
  });
  const sections = () => pages.flatMap((page) => page.sections);

  it('has every guide and runbook, and its pictures', () => {
    for (const place of [
      'index.html',
      'docs/cli.html',
      'infra/runbooks/BullionObjectFailed.html',
      'docs/console-list.png',
    ])
      expect([place, existsSync(join(outDir, place))]).toEqual([place, true]);
    expect(readFileSync(join(outDir, 'docs/cli.html'), 'utf8')).toContain('<a href="cli.html" aria-current="page">');
  });

  it('has each reason and alert that the command line explains, where it says it is', () => {
    const { anchors = new Set() } = pages.find(({ path }) => path === reasonsDocument) ?? {};
    expect(placeOf(reasonsDocument)).toBe('reasons/index.html');
    const addresses = Object.keys(explanations).map((name) => new URL(reasonAddress(name)));
    expect(addresses.filter(({ pathname, hash }) => pathname !== '/reasons' || !anchors.has(hash.slice(1)))).toEqual(
      [],
    );
    const html = readFileSync(join(outDir, 'reasons/index.html'), 'utf8');
    expect(html).toMatch(
      /<h2 id="ChecksumMismatch">[^]*?the file does not have the requested checksum[^]*?To do: publish/,
    );
    expect(html).toMatch(/<h2 id="BullionPollOverdue">[^]*?<pre tabindex="0"><code>kubectl get dic -A/);
  });

  it('leads from every page to every guide', () => {
    const groups = navigationOf(readFileSync(join(root, 'docs/README.md'), 'utf8'));
    const linked = new Set(groups.flatMap(({ links }) => links.map(({ path }) => path)));
    const guides = pages
      .map(({ path }) => path)
      .filter((path) => path.startsWith('docs/') && path !== 'docs/README.md');
    expect(guides.filter((path) => !linked.has(path))).toEqual([]);
  });

  it.each([
    ['ChecksumMismatch', 'docs/reference.html#ChecksumMismatch'],
    ['BullionObjectFailed', 'infra/runbooks/BullionObjectFailed.html#bullionobjectfailed'],
    ['golden channels', 'docs/golden-images.html#channels-roll-out-and-take-back'],
  ])('finds %s first', (query, url) => expect(find(sections(), query)[0]?.url).toBe(url));

  it('finds nothing for a word that is nowhere, and for none', () =>
    expect([find(sections(), 'xyzzy'), find(sections(), ' ')]).toEqual([[], []]));

  it('is not built if a link, an anchor or a picture leads nowhere', async () => {
    const broken = join(temporaryDirectory(), 'broken');
    for (const folder of ['docs', 'infra/runbooks']) mkdirSync(join(broken, folder), { recursive: true });
    writeFileSync(
      join(broken, 'README.md'),
      '# R\n\n[a](docs/gone.md) [b](docs/a.md#gone) ![c](gone.png) [d](../x.md)',
    );
    writeFileSync(join(broken, 'docs/a.md'), '# A\n');
    await expect(buildSite({ root: broken, outDir: join(broken, 'out'), version: '1' })).rejects.toThrow(
      /README.md: docs\/gone.md does not exist\n.*docs\/a.md#gone has no such heading or name\n.*x.md does not exist\n.*no picture gone.png$/,
    );
    expect(existsSync(join(broken, 'out'))).toBe(false);
  });
});

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));

describe.skipIf(executablePath === undefined)('the site in a browser', { timeout: 120_000 }, () => {
  it.each([
    [360, 'dark'],
    [1600, 'light'],
  ] as const)('can be searched and read at %d pixels, %s', async (width, colorScheme) => {
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--allow-file-access-from-files'];
    await using browser = await chromium.launch({ executablePath: executablePath!, args });
    const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    const folder = process.env['BULLION_PICTURES'];
    for (const place of ['index.html', 'docs/reference.html', 'docs/console.html']) {
      await page.goto(pathToFileURL(join(outDir, place)).href);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
      expect(violations.map(({ id, nodes }) => [place, id, nodes.map(({ html }) => html)])).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      if (folder !== undefined)
        await page.screenshot({ path: join(folder, `site-${width}-${place.replace('/', '-')}.png`) });
    }
    await page.keyboard.press('/');
    await page.keyboard.type('ChecksumMismatch');
    await page.locator('#found a').first().waitFor();
    if (folder !== undefined) await page.screenshot({ path: join(folder, `site-${width}-search.png`) });
    await page.keyboard.press('Enter');
    await page.waitForURL(/reference\.html#ChecksumMismatch$/);
    expect(await page.locator('tr:has(.target:target)').innerText()).toContain('ChecksumMismatch');
    expect(faults).toEqual([]);
  });
});
