// The console in a real browser, on the local cluster. Left out where there is no Chromium.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import axe from 'axe-core';
import { type Browser, type Page, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { deleteImage, images } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { type ExchangeCluster, startExchangeCluster } from '#test/support/exchange.ts';

const mib = 2 ** 20;
const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));
/** Where the pictures of the documents come from. */
const pictures = process.env['BULLION_PICTURES'];

const looks = [
  [360, 'dark'],
  [1600, 'light'],
] as const;

/** In the page: what begins behind the first part is lost, until the page is told otherwise. Notes where each part begins. */
const cutAfterFirstPart = `{
  const { setRequestHeader, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
    if (name === 'Upload-Offset') {
      this.isCut = Number(value) > 0 && sessionStorage.isWhole !== 'yes';
      sessionStorage.offsets = (sessionStorage.offsets ?? '') + ' ' + value;
    }
    setRequestHeader.call(this, name, value);
  };
  XMLHttpRequest.prototype.send = function (body) {
    if (this.isCut) this.dispatchEvent(new ProgressEvent('error'));
    else send.call(this, body);
  };
}`;

const aPolicy = {
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: { namespace: 'default', name: 'fedora' },
  spec: { dataImportCrons: { names: ['fedora'] }, channels: [{ name: 'stable', dataSource: 'fedora' }] },
};
const jammy = '/objects/virtualmachineimages.hypercloud.tmaxanc.com/default/jammy';

/** Every page; the last one for the upload of these images. */
const pagesOf = (uploads: string): readonly string[] => [
  '/objects',
  jammy,
  `${jammy}/consumers`,
  `${jammy}/delete`,
  '/golden',
  '/queue',
  '/backups',
  '/golden/default/fedora',
  '/golden/default/fedora/mark-bad?version=a',
  '/import',
  '/upload',
  `/upload/default/${uploads}`,
];

interface Violations {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

describe.skipIf(executablePath === undefined)('the console in a browser', { timeout: 300_000 }, () => {
  const dir = temporaryDirectory();
  const file = join(dir, 'disk.raw');
  const faults: string[] = [];
  let cluster: ExchangeCluster;
  let files: Server;
  let browser: Browser;
  let page: Page;
  let source: string;

  beforeAll(async () => {
    await writeBootDisk(file, { bytes: 4 * mib, dataBytes: mib });
    const disk = readFileSync(file);
    // Slow, so that there is something to see.
    files = createServer((_request, response) => void send(response)).listen(0, '127.0.0.1');
    const send = async (response: ServerResponse): Promise<void> => {
      response.writeHead(200, { 'content-length': disk.length });
      for (let at = 0; at < disk.length; at += disk.length / 16) {
        response.write(disk.subarray(at, at + disk.length / 16));
        await sleep(300);
      }
      response.end();
    };
    [cluster, browser] = await Promise.all([
      startExchangeCluster({ tickSeconds: 1 }),
      chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox', '--disable-dev-shm-usage'] }),
    ]);
    source = `http://127.0.0.1:${(files.address() as AddressInfo).port}/disk.raw`;
    page = await newPage();
  }, 240_000);
  afterAll(async () => {
    await browser?.close();
    files?.closeAllConnections();
    files?.close();
    await cluster?.close();
  });

  const newPage = async (): Promise<Page> => {
    const made = await (await browser.newContext({ viewport: { width: 1280, height: 640 } })).newPage();
    // On a busy machine everything is late.
    made.setDefaultTimeout(120_000);
    made.on('pageerror', (error) => faults.push(error.message));
    made.on(
      'console',
      (message) => /Content Security Policy|Refused/.test(message.text()) && faults.push(message.text()),
    );
    return made;
  };
  const open = (path: string) => page.goto(`${cluster.console.url}${path}`);
  const picture = async (name: string): Promise<void> => {
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
  };

  it('lets the owner of this computer in by a code, once', async () => {
    const address = cluster.console.loginUrl();
    await page.goto(address);
    await page.waitForURL('**/objects');
    expect(await page.textContent('h1')).toBe('Images and volumes');
    const other = await newPage();
    expect((await other.goto(address))?.status()).toBe(401);
    expect((await other.goto(`${cluster.console.url}/objects`))?.url()).toMatch(/\/login$/);
    const rebound = await other.goto(`${cluster.console.url.replace('127.0.0.1', 'localhost')}/login`);
    expect(rebound?.status()).toBe(421);
    await other.context().close();
  });

  it('imports by a form, checked at the cluster first, and shows progress without a reload', async () => {
    await open('/import');
    await page.fill('#place', source);
    await page.fill('#name', 'No_Name');
    await page.fill('#storageClass', 'local');
    await page.click('button:has-text("Check")');
    expect(await page.textContent('[role=alert]')).toMatch(/metadata\.name: Invalid value/);
    await page.fill('#name', 'jammy');
    await page.click('button:has-text("Check")');
    expect(await page.textContent('pre')).toMatch(/kind: VirtualMachineImage/);
    expect(await cluster.kube.get(images, { namespace: 'default', name: 'jammy' })).toBeUndefined();
    await page.keyboard.press('Tab');
    await page.click('main button:has-text("Import")');
    await page.waitForURL('**/objects/**/jammy');
    await open('/objects');
    await page.evaluate('window.unloaded = false; addEventListener("pagehide", () => { window.unloaded = true; })');
    const row = page.locator('tr', { hasText: 'jammy' });
    await row.locator('progress:not([value="0"])').waitFor();
    await picture('console-list');
    await row.locator('.badge.ok').waitFor();
    expect(await page.evaluate('window.unloaded')).toBe(false);
  });

  it('shows transfers while they run, and that they have ended, without a reload', async () => {
    const metadata = { namespace: 'default', name: 'moving' };
    const spec = { source: { http: `${source}?moving` }, storageClassName: 'local' };
    await cluster.kube.create(images, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata,
      spec,
    });
    await open('/queue');
    const row = page.locator('tr', { hasText: 'moving' });
    await row.locator('progress').waitFor();
    await picture('console-transfers');
    expect(await row.textContent()).toMatch(/import\s+from 127\.0\.0\.1/);
    await row.waitFor({ state: 'detached' });
    await deleteImage(cluster.kube, 'moving');
  });

  it('uploads a file, and downloads it', async () => {
    await open('/upload');
    await page.fill('#name', 'mine');
    await page.fill('#storageClass', 'local');
    await page.click('main button');
    await page.setInputFiles('#file-mine', file);
    await page.click('main button:has-text("Upload")');
    await page.waitForURL('**/objects/**/mine?sha256=*');
    await page.locator('h1 .badge.ok').waitFor();
    await page.locator('text=What arrived is the file that was sent').waitFor();
    await picture('console-image');
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#download')]);
    expect(download.suggestedFilename()).toMatch(/^mine\./);
    expect(readFileSync(await download.path()).length).toBeGreaterThan(0);
  });

  it('sends several files at once, and says why one is no disk', async () => {
    const text = join(dir, 'notes.pdf');
    writeFileSync(text, '%PDF-1.7 not a disk');
    await open('/upload');
    await page.fill('#name', 'first second');
    await page.fill('#storageClass', 'local');
    await page.click('main button');
    await page.setInputFiles('#file-first', file);
    await page.setInputFiles('#file-second', text);
    await page.click('#upload-all');
    await page.locator('form[aria-label=first] a:has-text("Sent")').waitFor();
    await page.locator('form[aria-label=second]', { hasText: /The upload failed|Sent/ }).waitFor();
    expect(await page.textContent('form[aria-label=second] [role=status]')).toMatch(/the file is a PDF document/);
  });

  it('resumes an upload after a cut connection and a reload, and compares the whole file', async () => {
    const large = join(dir, 'large.raw');
    const part = 16 * mib;
    await writeBootDisk(large, { bytes: part + 4 * mib, dataBytes: mib });
    await open('/upload');
    await page.fill('#name', 'cut');
    await page.fill('#storageClass', 'local');
    await page.click('main button');
    await page.addInitScript({ content: cutAfterFirstPart });
    await page.reload();
    const send = async () => {
      await page.setInputFiles('#file-cut', large);
      await page.click('main button:has-text("Upload")');
    };
    page.on('dialog', (dialog) => void dialog.accept());
    await send();
    await page.locator('[role=status]:has-text("the connection was lost; retrying")').waitFor();
    await page.evaluate('Object.assign(sessionStorage, { isWhole: "yes", offsets: "" })');
    await page.reload();
    await send();
    await page.waitForURL('**/objects/**/cut?sha256=*');
    expect(await page.evaluate('sessionStorage.offsets')).toBe(` ${part}`);
    await page.locator('text=What arrived is the file that was sent').waitFor();
  });

  /** A browser of somebody else, logged in with a token. */
  const enterAs = async (authorization: string) => {
    const theirs = await newPage();
    const open = (path: string) => theirs.goto(`${cluster.console.url}${path}`);
    await open('/login');
    await theirs.fill('#token', authorization.replace('Bearer ', ''));
    await theirs.keyboard.press('Tab');
    await theirs.keyboard.press('Enter');
    await theirs.waitForURL('**/objects');
    return { theirs, open };
  };

  it('shows an account of one namespace that namespace, and refuses what it may not do', async () => {
    await cluster.kube.create(
      { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'others' } },
    );
    const image = {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      spec: { source: { http: source }, storageClassName: 'local' },
    };
    await cluster.kube.create(images, { ...image, metadata: { namespace: 'others', name: 'secret' } });
    const { authorization } = await cluster.accountOf('viewer', 'view');
    const { theirs, open } = await enterAs(authorization);
    expect(await theirs.textContent('table')).toMatch(/jammy/);
    expect(await theirs.textContent('main')).not.toMatch(/secret/);
    await open('/objects/virtualmachineimages.hypercloud.tmaxanc.com/others/secret');
    expect(await theirs.textContent('[role=alert]')).toMatch(/cannot get/);
    await open('/objects/virtualmachineimages.hypercloud.tmaxanc.com/default/jammy/delete');
    await theirs.click('button.danger');
    expect(await theirs.textContent('[role=alert]')).toMatch(/cannot delete/);
    expect(await cluster.kube.get(images, { namespace: 'default', name: 'jammy' })).toBeDefined();
    await theirs.click('text=Log out');
    await theirs.waitForURL('**/login');
    expect((await open('/objects'))?.url()).toMatch(/\/login$/);
    await theirs.context().close();
  });

  it('works on every page for an account that may edit one namespace', async () => {
    const { theirs, open } = await enterAs(cluster.editor.authorization);
    await cluster.kube.create(goldenImagePolicyKind.type, aPolicy);
    await cluster.kube.create(goldenImagePolicyKind.type, {
      ...aPolicy,
      metadata: { namespace: 'others', name: 'secret' },
    });
    for (const path of pagesOf('mine')) {
      const answer = await open(path);
      const notices = await theirs.locator('.notice').allTextContents();
      // That consumers elsewhere cannot be seen is no fault.
      const refusals = notices.filter((text) => !/You may not list every namespace/.test(text));
      expect([path, answer?.status(), refusals]).toEqual([path, 200, []]);
      expect(`${path}: ${await theirs.textContent('main')}`).not.toMatch(/secret|others/);
    }
    for (const path of ['/queue', '/backups', '/golden', '/objects'])
      expect(`${path}: ${await (await open(`${path}?namespace=others`))?.text()}`).not.toMatch(/secret/);
    await theirs.context().close();
  });

  it('can be used by everybody: axe finds nothing, at any width, dark and light', async () => {
    for (const path of pagesOf('mine,second')) {
      await open(path);
      await page.evaluate(axe.source);
      for (const [width, colorScheme] of looks) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        const { violations } = await page.evaluate<Violations>('axe.run()');
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
        expect(found, `${path} ${width} ${colorScheme}`).toEqual([]);
        const isWide = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
        expect(isWide, `${path} is wider than ${width}`).toBe(false);
      }
    }
    expect(faults).toEqual([]);
    await deleteImage(cluster.kube, 'jammy');
  });
});
