import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { jobs, kubeEvents, pods } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { sumScript } from '#shared/console/upload-script.ts';
import { aHarvesterImage, aHyperCloudImage } from '#test/support/builders.ts';
import { type ConsoleWorld, createConsoleWorld, origin } from '#test/support/console.ts';

const images = hyperCloudImageKind.type;
const place = '/objects/virtualmachineimages.hypercloud.tmaxanc.com/default';

const ready = (status: 'True' | 'False', reason: string, message: string) => ({
  conditions: [{ type: 'Ready', status, reason, message }],
});

const seedImage = ({ kube }: ConsoleWorld, name: string, status: object = {}, annotations = {}): void => {
  const image = aHyperCloudImage();
  const metadata = { namespace: 'default', name, annotations };
  kube.seed(images, { ...image, metadata, status } as never);
};

const names = (page: string): readonly string[] =>
  [...page.matchAll(/<th scope="row">\s*<a [^>]*>([^<]*)</g)].map(([, name = '']) => name);

describe('a visitor', () => {
  it('logs in with a token that the API server knows, and with no other', async () => {
    const { app, post } = await createConsoleWorld();
    const answer = await post('/login', { token: 'of-rita' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/objects']);
    const cookie = answer.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^bullion_session=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    expect(cookie).not.toContain('of-rita');
    const page = await app.request(`${origin}/objects`, { headers: { host: 'console.example', cookie } });
    expect(await page.text()).toContain('<span>rita</span>');
    expect((await post('/login', { token: 'of-a-stranger' })).status).toBe(401);
    expect((await post('/login', { token: 'not a token' })).status).toBe(400);
  });

  it.each([
    ['no cookie', ''],
    ['a cookie that was not sealed here', 'bullion_session=eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAA.AAAA.AAAA'],
  ])('is asked to log in with %s', async (_what, cookie) => {
    const { app, shown } = await createConsoleWorld();
    const headers = { host: 'console.example', cookie, origin };
    const before = shown.length;
    const page = await app.request(`${origin}/objects`, { headers });
    expect([page.status, page.headers.get('location')]).toEqual([303, '/login']);
    expect((await app.request(`${origin}${place}/a/delete`, { method: 'POST', headers })).status).toBe(401);
    expect((await app.request(`${origin}/live/objects`, { headers })).status).toBe(401);
    expect(shown).toHaveLength(before);
  });

  it('is asked again when the session is over', async () => {
    const world = await createConsoleWorld();
    expect((await world.get('/objects')).status).toBe(200);
    world.clock.now += 12 * 3600_000 + 1000;
    expect((await world.get('/objects')).status).toBe(303);
  });

  it('of this computer logs in by a code, once', async () => {
    const codes = new Set(['secret']);
    const { app, shown } = await createConsoleWorld({ takeCode: (code) => codes.delete(code) });
    const enter = () => app.request(`${origin}/login?code=secret`, { headers: { host: 'console.example' } });
    const first = await enter();
    expect([first.status, first.headers.get('set-cookie')?.startsWith('bullion_session=ey')]).toEqual([200, true]);
    expect(shown.at(-1)).toBe('owner');
    expect((await enter()).status).toBe(401);
  });

  it('sends a cookie over HTTPS alone where the console has it', async () => {
    const { app } = await createConsoleWorld({ url: 'https://console.example' });
    const headers = { host: 'console.example', origin: 'https://console.example' };
    const body = new URLSearchParams({ token: 'of-rita' });
    const answer = await app.request(`${origin}/login`, { method: 'POST', headers, body });
    expect(answer.headers.get('set-cookie')).toMatch(/; Secure$/);
  });
});

describe('a request', () => {
  it('to another name of this host is refused', async () => {
    const { app } = await createConsoleWorld();
    const answer = await app.request('http://attacker.example/login', { headers: { host: 'attacker.example' } });
    expect(answer.status).toBe(421);
  });

  it.each([['https://attacker.example'], ['null'], ['http://console.example:81'], ['']])(
    'that a page of %j sends changes nothing',
    async (from) => {
      const world = await createConsoleWorld();
      seedImage(world, 'jammy');
      expect((await world.post(`${place}/jammy/delete`, {}, { origin: from })).status).toBe(400);
      expect(world.kube.all(images)).toHaveLength(1);
    },
  );

  it('gets a page that may load and send nothing elsewhere', async () => {
    const { get } = await createConsoleWorld();
    for (const path of ['/objects', '/login', '/nothing', '/console.js', '/upload.js']) {
      const { headers } = await get(path);
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self'; .*form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toBe(path.includes('.') ? 'no-cache' : 'no-store');
    }
    expect(await (await get('/objects')).text()).not.toMatch(/<script(?! src="\/console\.js")|style=|\son\w+=/);
  });
});

describe('what pages load', () => {
  it.each(['/console.js', '/upload.js', '/console.css'])(
    '%s is compressed, and loaded again only when changed',
    async (path) => {
      const { app } = await createConsoleWorld();
      const load = (headers: Record<string, string> = {}) =>
        app.request(`${origin}${path}`, { headers: { host: 'console.example', ...headers } });
      const plain = await load();
      const whole = await plain.text();
      expect(plain.headers.get('cache-control')).toBe('no-cache');
      const small = await load({ 'accept-encoding': 'gzip' });
      const bytes = Buffer.from(await small.arrayBuffer());
      expect([small.headers.get('content-encoding'), bytes.length < whole.length / 2]).toEqual(['gzip', true]);
      expect(gunzipSync(bytes).toString()).toBe(whole);
      const tag = small.headers.get('etag') ?? '';
      const again = await load({ 'accept-encoding': 'gzip', 'if-none-match': tag });
      expect([again.status, (await again.arrayBuffer()).byteLength]).toEqual([304, 0]);
      expect((await load({ 'if-none-match': '"another"' })).status).toBe(200);
    },
  );
});

describe('the list', () => {
  it('has images and volumes of every kind, and what each waits for', async () => {
    const world = await createConsoleWorld();
    seedImage(world, 'jammy', {
      phase: 'Downloading',
      progress: 12,
      ...ready('False', 'Downloading', 'attempt 1 of 4'),
      transfer: {
        phase: 'downloading',
        percent: 12,
        receivedBytes: 2 ** 20,
        totalBytes: 2 ** 23,
        bytesPerSecond: 2 ** 20,
        etaSeconds: 7,
      },
    });
    world.kube.seed(harvesterImageKind.type, aHarvesterImage({ metadata: { namespace: 'vms', name: 'focal' } }));
    world.kube.seed(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace: 'vms', name: 'root' },
      spec: {},
    });
    const page = await world.text('/objects');
    expect(names(page)).toEqual(['jammy', 'focal', 'root']);
    expect(page).toContain('<progress max="100" value="12" aria-label="Progress of jammy">');
    expect(page).toContain('1.0 MiB of 8.0 MiB, 1.0 MiB/s, 7s left');
    expect(names(await world.text('/objects?namespace=vms'))).toEqual(['focal', 'root']);
    expect(names(await world.text('/objects?kind=datavolumes.cdi.kubevirt.io'))).toEqual(['root']);
  });

  it('pages through thousands by the pages of the API, each object once', async () => {
    const world = await createConsoleWorld();
    const all = Array.from({ length: 1234 }, (_, at) => `image-${String(at).padStart(5, '0')}`);
    for (const name of all) seedImage(world, name);
    const seen: string[] = [];
    let path: string | undefined = '/objects';
    while (path !== undefined) {
      const page: string = await world.text(path);
      const shown = names(page);
      expect(shown.length).toBeLessThanOrEqual(100);
      seen.push(...shown);
      path = /rel="next" href="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen).toEqual(all);
  });

  it('finds, filters and sorts by its address', async () => {
    const world = await createConsoleWorld();
    for (let at = 0; at < 700; at += 1)
      seedImage(world, `image-${at}`, { phase: 'Available', virtualSize: at, ...ready('True', 'Ready', '') });
    seedImage(world, 'odd', { phase: 'Failed', ...ready('False', 'ChecksumMismatch', 'it hashes to something else') });
    expect(names(await world.text('/objects?state=failed'))).toEqual(['odd']);
    expect(names(await world.text('/objects?q=HASHES'))).toEqual(['odd']);
    expect(names(await world.text('/objects?sort=size&order=desc')).slice(0, 2)).toEqual(['image-699', 'image-698']);
    expect(names(await world.text('/objects?sort=size&order=desc&after=100'))[0]).toBe('image-599');
    expect(await world.text('/objects?q=nothing')).toContain('Nothing matches');
  });
});

describe('one image', () => {
  it('says why, and offers what can be done', async () => {
    const world = await createConsoleWorld();
    seedImage(world, 'odd', {
      phase: 'Failed',
      attempts: 1,
      attemptsAllowed: 4,
      ...ready('False', 'ChecksumMismatch', 'it hashes to something else'),
      digests: { sha256: 'abc' },
    });
    const page = await world.text(`${place}/odd`);
    for (const words of [
      'ChecksumMismatch',
      'it hashes to something else',
      '1 of 4 begun',
      'publish the file',
      'sha256:abc',
    ])
      expect(page).toContain(words);
    expect((await world.post(`${place}/odd/retry`, {})).headers.get('location')).toBe(`${place}/odd`);
    expect(world.kube.all(images)[0]?.metadata.annotations).toHaveProperty(['bullion.dev/retry']);
    expect((await world.get(`${place}/none`)).status).toBe(404);
  });

  it('is deleted as it was shown, once its consumers were named', async () => {
    const world = await createConsoleWorld();
    seedImage(world, 'jammy', {
      phase: 'Available',
      children: { volume: 'jammy-image-pvc' },
      ...ready('True', 'Ready', ''),
    });
    world.kube.seed(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace: 'vms', name: 'root' },
      spec: { source: { pvc: { namespace: 'default', name: 'jammy-image-pvc' } } },
    });
    const page = await world.text(`${place}/jammy/delete`);
    expect(page).toMatch(/It is in use[^]*dv\/root[^]*vms/);
    const uid = /name="uid" value="([^"]*)"/.exec(page)?.[1] ?? '';
    expect((await world.post(`${place}/jammy/delete`, { uid: 'of-another' })).status).toBe(409);
    expect(world.kube.all(images)).toHaveLength(1);
    expect((await world.post(`${place}/jammy/delete`, { uid })).status).toBe(303);
    expect(world.kube.all(images)).toHaveLength(0);
  });
});

describe('golden images', () => {
  const policyType = goldenImagePolicyKind.type;
  const version = (name: string, over: object = {}) => ({
    name,
    cron: 'fedora',
    arrived: '2026-01-01T00:00:00Z',
    state: 'Verified',
    held: [{ channel: 'stable', seconds: 5 }],
    ...over,
  });
  const withPolicy = async (): Promise<ConsoleWorld> => {
    const world = await createConsoleWorld();
    const channels = [{ name: 'stable', dataSource: 'fedora' }];
    world.kube.seed(policyType, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace: 'golden', name: 'fedora' },
      spec: {
        dataImportCrons: { names: ['fedora'] },
        channels,
        verify: { signature: { cosign: { keys: { configMap: 'k' } } } },
      },
      status: {
        channels: [
          {
            name: 'stable',
            dataSource: 'fedora',
            version: 'fedora-2',
            next: 'fedora-3',
            reason: 'WaitingForApproval',
            message: 'approve it',
          },
        ],
        versions: [
          version('fedora-1'),
          version('fedora-2', {
            checks: [
              {
                name: 'signature',
                state: 'Passed',
                reason: 'Signed',
                message: 'signed by vendor',
                digest: 'sha256:2',
                rule: 'r',
                time: '',
              },
              { name: 'boot', state: 'Failed', reason: 'NoSign', message: 'no login prompt', rule: 'r', time: '' },
            ],
          }),
          version('fedora-3', { held: [] }),
        ],
        conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }],
      },
    } as never);
    return world;
  };
  const specOf = ({ kube }: ConsoleWorld) => kube.all(policyType)[0]?.spec;

  it('are listed by channel, with version, state and signature', async () => {
    const world = await withPolicy();
    const page = await world.text('/golden');
    for (const words of ['stable', 'fedora-2', 'WaitingForApproval', 'signed by vendor']) expect(page).toContain(words);
    world.kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: {
        namespace: 'golden',
        name: 'fedora',
        labels: { 'instancetype.kubevirt.io/default-preference': 'fedora' },
      },
      spec: { source: {} },
    });
    expect(await world.text('/golden')).toMatch(/<td class="minor">fedora<\/td>/);
    expect(page).toMatch(/<span class="badge bad">.*Failed<\/span>/);
    expect(await world.text('/golden/golden/fedora')).toMatch(/boot<\/span> <small class="why">no login prompt/);
  });

  it.each([
    ['promote?channel=stable&version=fedora-3', ['fedora-3 may enter channel stable, which has fedora-2']],
    ['rollback?channel=stable', ['stable goes from fedora-2 to fedora-1', 'name="version" value="fedora-1"']],
    ['mark-bad?version=fedora-2', ['stable goes back from fedora-2 to fedora-1']],
    ['mark-bad?version=fedora-3', ['No channel has it now']],
    [
      'deprecate?version=fedora-2',
      ['Users who make a disk from fedora-2 are warned', 'name="replacement"', 'no new disks'],
    ],
    ['deprecate?channel=stable', ['Users who make a disk from channel stable are warned']],
  ])('%s names what will happen, and does nothing yet', async (address, words) => {
    const world = await withPolicy();
    const before = JSON.stringify(specOf(world));
    const page = await world.text(`/golden/golden/fedora/${address}`);
    for (const word of words) expect(page).toContain(word);
    expect(JSON.stringify(specOf(world))).toBe(before);
  });

  it.each([
    [
      'promote',
      { channel: 'stable', version: 'fedora-3', soak: 'skip it' },
      { approvals: [{ channel: 'stable', version: 'fedora-3', skipSoak: true }] },
    ],
    [
      'pin',
      { channel: 'stable', version: 'fedora-1', reason: 'audit' },
      { pins: { stable: { version: 'fedora-1', reason: 'audit' } } },
    ],
    [
      'rollback',
      { channel: 'stable', version: 'fedora-1', reason: 'slow' },
      { pins: { stable: { version: 'fedora-1', reason: 'slow' } } },
    ],
    ['mark-bad', { version: 'fedora-2', reason: 'panics' }, { bad: [{ version: 'fedora-2', reason: 'panics' }] }],
    [
      'deprecate',
      { channel: 'stable', reason: 'old', disks: 'no new disks', replacement: 'next' },
      { deprecated: [{ channel: 'stable', obsolete: true, reason: 'old', replacement: 'next' }] },
    ],
    [
      'deprecate',
      { version: 'fedora-2', reason: 'old', disks: 'with a warning', replacement: '' },
      { deprecated: [{ version: 'fedora-2', reason: 'old' }] },
    ],
    ['undeprecate', { version: 'fedora-2' }, { deprecated: [] }],
  ])('%s is decided once it was confirmed', async (what, fields, spec) => {
    const world = await withPolicy();
    const answer = await world.post(`/golden/golden/fedora/${what}`, fields as Record<string, string>);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/golden/golden/fedora']);
    expect(specOf(world)).toMatchObject(spec);
  });

  it('asks why before a version is marked as bad', async () => {
    const world = await withPolicy();
    expect((await world.post('/golden/golden/fedora/mark-bad', { version: 'fedora-2' })).status).toBe(400);
    expect(specOf(world)?.bad).toBeUndefined();
    expect((await world.get('/golden/golden/fedora/toString?version=x')).status).toBe(404);
  });
});

describe('an import', () => {
  const fields = { name: 'jammy', namespace: 'vms', place: 'https://a.example/jammy.img', group: 'hypercloud' };

  it('says at the form what the form lacks', async () => {
    const world = await createConsoleWorld();
    const answer = await world.post('/import', { ...fields, step: 'check', place: 'ftp://a/b' });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringMatching(/role="alert"[^]*ftp:\/\/a\/b is not a source/),
    ]);
  });

  it.each([
    ['https://a.example/jammy.img', '/objects/virtualmachineimages.hypercloud.tmaxanc.com/vms/jammy', images],
    ['docker://quay.io/disks/jammy', '/objects/dataimportcrons.cdi.kubevirt.io/vms/jammy', dataImportCronKind.type],
  ])('of %s is applied', async (from, where, type) => {
    const world = await createConsoleWorld();
    const answer = await world.post('/import', { ...fields, place: from, step: 'apply' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, where]);
    expect(JSON.stringify(world.kube.all(type as never))).toContain(from);
  });
});

describe('an upload', () => {
  it('makes an image for each name, or says which is refused', async () => {
    const { post, kube } = await createConsoleWorld();
    const fields = { name: 'one  two,three', namespace: 'default', storageClass: 'local' };
    const answer = await post('/upload', fields);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/upload/default/one%2Ctwo%2Cthree']);
    expect(kube.all(harvesterImageKind.type).map(({ metadata }) => metadata.name)).toEqual(['one', 'two', 'three']);
    const none = await post('/upload', { ...fields, name: ' , ' });
    expect([none.status, await none.text()]).toEqual([400, expect.stringContaining('1 to 20 files, not 0')]);
  });

  it.each([
    ['abc', 'abc'],
    ['two blocks', 'x'.repeat(100)],
    ['an end in the next block', 'y'.repeat(60)],
    ['nothing', ''],
  ])('has the sha256 of a file, in whatever parts it comes: %s', (_, text) => {
    const bytes = Buffer.from(text);
    const { add, end } = runInNewContext(`${sumScript}; createSum()`) as {
      readonly add: (bytes: Uint8Array) => void;
      readonly end: () => string;
    };
    for (let at = 0; at < bytes.length; at += 7) add(Uint8Array.from(bytes.subarray(at, at + 7)));
    expect(end()).toBe(createHash('sha256').update(bytes).digest('hex'));
  });

  it.each([
    [undefined, /is compared once its disk is written/],
    ['a'.repeat(64), /What arrived is the file that was sent/],
    ['b'.repeat(64), /role="alert">What arrived is not the file that was sent/],
  ])('is compared with what arrived: %s', async (sha256, words) => {
    const world = await createConsoleWorld();
    seedImage(world, 'mine', { phase: 'Available', digests: sha256 === undefined ? {} : { sha256 } });
    expect(await world.text(`${place}/mine?sha256=${'a'.repeat(64)}`)).toMatch(words);
    expect(await world.text(`${place}/mine?sha256=<i>`)).not.toMatch(/compared|What arrived/);
  });
});

describe('the steps of an image', () => {
  it.each<[string, object, readonly string[]]>([
    ['Downloading', {}, ['✓ Pending', '● Downloading', '○ Converting', '○ Verifying', '○ Available']],
    ['Failed', {}, ['✓ Pending', '▲ Failed']],
    [
      'Failed',
      { transfer: { phase: 'Converting', receivedBytes: 7 } },
      ['✓ Pending', '✓ Downloading', '○ Converting', '▲ Failed'],
    ],
  ])('are those that it took: %s %o', async (phase, more, steps) => {
    const world = await createConsoleWorld();
    seedImage(world, 'one', { phase, ...more });
    const [, list = ''] = /<ol class="steps"[^>]*>([^]*?)<\/ol>/.exec(await world.text(`${place}/one`)) ?? [];
    const items = list.split('</li>').map((item) => item.replaceAll(/<small>.*?<\/small>|<[^>]*>/g, ' '));
    expect(items.map((item) => item.replaceAll(/\s+/g, ' ').trim()).filter((item) => item !== '')).toEqual(steps);
  });
});

describe('the times of these steps', () => {
  const uid = 'uid-one';
  const at = (minute: number): string => `2026-01-02T03:${String(minute).padStart(2, '0')}:00Z`;
  const made = (role: string, more: object = {}) => ({
    namespace: 'default',
    name: `${role}-${uid}`,
    uid: `${role}-uid`,
    creationTimestamp: at(1),
    labels: { [labels.ownerUid]: uid, [labels.role]: role },
    ...more,
  });
  const job = (role: string, status: object) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: made(role),
    spec: { template: { spec: { containers: [] } } },
    status,
  });
  const event = (reason: string, about: string, time: string) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { namespace: 'default', name: `${reason}-${about}` },
    involvedObject: { uid: about },
    type: 'Warning',
    reason,
    lastTimestamp: time,
  });
  const condition = (status: 'True' | 'False', more: object) => ({
    conditions: [{ type: 'Ready', status, reason: 'Because', message: '', lastTransitionTime: at(1), ...more }],
  });
  const transfer = { run: 'import-a', phase: 'Verifying', receivedBytes: 7, startedAt: at(2), reportedAt: at(9) };

  it.each<[string, object, readonly object[], readonly string[]]>([
    ['Available', condition('True', { lastTransitionTime: at(9) }), [], ['Pending 0', 'Available 9']],
    [
      'Available',
      condition('True', { lastTransitionTime: at(9) }),
      [job('inspect', { startTime: at(1) }), job('import', { startTime: at(3), completionTime: at(8) })],
      ['Pending 0', 'Downloading 3', 'Verifying ended 8', 'Available 9'],
    ],
    [
      'Downloading',
      { transfer: { ...transfer, phase: 'Downloading' }, ...condition('False', {}) },
      [],
      ['Pending 0', 'Downloading 2'],
    ],
    // Of a run before a retry.
    ['Pending', condition('False', {}), [job('import', { startTime: at(3) })], ['Pending 0']],
    [
      'Failed',
      { transfer, ...condition('False', { lastUpdateTime: at(7) }) },
      [job('import', { startTime: at(3) })],
      ['Pending 0', 'Downloading 3', 'Failed 7'],
    ],
    [
      'Failed',
      condition('False', { lastUpdateTime: at(7) }),
      [event('Because', uid, at(6)), event('Because', 'another', at(8)), event('Other', uid, at(9))],
      ['Pending 0', 'Failed 6'],
    ],
    // Ready is False since the first minute, which is not when it failed.
    ['Failed', condition('False', {}), [], ['Pending 0']],
  ])('%s %o are those that the cluster knows', async (phase, status, others, steps) => {
    const world = await createConsoleWorld();
    const image = aHyperCloudImage();
    const metadata = { namespace: 'default', name: 'one', uid, creationTimestamp: at(0) };
    world.kube.seed(images, { ...image, metadata, status: { phase, ...status } } as never);
    for (const one of others) {
      if ('status' in one) world.kube.seed(jobs, one as never);
      else world.kube.seed(kubeEvents, one as never);
    }
    const page = await world.text(`${place}/one`);
    const [, list = ''] = /<ol class="steps"[^>]*>([^]*?)<\/ol>/.exec(page) ?? [];
    const shown = list.split('</li>').flatMap((item) => {
      const found = /[✓▲●○]<\/span>\s*(\w+)\s[^]*<time datetime="[^"]*:(\d\d):00Z">(ended )?/.exec(item);
      return found === null ? [] : [`${found[1]} ${found[3] ?? ''}${Number(found[2])}`];
    });
    expect(shown).toEqual(steps);
  });
});

describe('text of the API', () => {
  const skeleton = (page: string): string => page.replace(/[^<>"]/g, '');
  const text = fc.string({ unit: 'binary', minLength: 1 }).map((words) => `a${words}`);

  it('never becomes markup', async () => {
    const pagesWith = async (name: string, words: string): Promise<readonly string[]> => {
      const world = await createConsoleWorld();
      const state = {
        phase: `p${words}`,
        format: words,
        storageClassName: words,
        virtualSize: 1,
        digests: { sha256: words },
        lastFailure: { reason: words, message: `m${words}` },
      };
      seedImage(world, name, { ...state, ...ready('False', `r${words}`, `m${words}`) }, { note: words });
      const path = `${place}/${encodeURIComponent(name)}`;
      return [await world.text('/objects'), await world.text(path), await world.text(`${path}/delete`)].map(skeleton);
    };
    const plain = await pagesWith('plain', 'aplain');
    await fc.assert(
      fc.asyncProperty(text, async (words) => {
        // A name of Kubernetes holds no slash, and no dots alone.
        const name = words.replaceAll(/[/.%\\]/g, '').trim() || 'a';
        expect(await pagesWith(name, words)).toEqual(plain);
      }),
      { numRuns: 60, examples: [['<script>alert(1)</script>'], ['"><img src=x onerror=alert(1)>'], ["'`&amp;{{"]] },
    );
  });
});

describe('the page of transfers', () => {
  const uid = 'uid-jammy';
  const aJob = (name: string, over: object, suspend = false) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      namespace: 'default',
      name: `import-${name}`,
      labels: {
        [labels.queue]: 'waiting',
        [labels.ownerUid]: uid,
        [labels.ownerKind]: 'VirtualMachineImage.hypercloud.tmaxanc.com',
      },
      annotations: { [annotations.ownerName]: name, [annotations.sourceHost]: 'images.example', ...over },
    },
    spec: { suspend, template: { spec: { containers: [] } } },
  });
  const transfer = {
    run: 'p',
    reportedAt: '',
    startedAt: '',
    sequence: 1,
    phase: 'Downloading',
    percent: 42,
    receivedBytes: 42,
    bytesPerSecond: 2048,
  };
  const text = async (world: ConsoleWorld, path = '/queue') =>
    (await world.text(path)).replaceAll(/<[^>]*>|\s+/g, ' ').replaceAll(/ +/g, ' ');

  it('says what moves, where and how fast, and what waits behind it', async () => {
    const world = await createConsoleWorld();
    const image = aHyperCloudImage();
    const metadata = { namespace: 'default', name: 'jammy', uid };
    world.kube.seed(images, {
      ...image,
      metadata,
      status: { phase: 'Downloading', progress: 42, transfer, ...ready('False', 'Downloading', '') },
    } as never);
    world.kube.seed(jobs, aJob('waits', { [annotations.queuePlace]: '1 of 1 in the queue' }, true) as never);
    world.kube.seed(jobs, aJob('jammy', {}) as never);
    world.kube.seed(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'default', name: 'p', labels: { [labels.ownerUid]: uid } },
      spec: { containers: [], nodeName: 'node-7' },
      status: { phase: 'Running' },
    } as never);
    const page = await text(world);
    expect(page).toMatch(
      /jammy default VirtualMachineImage import from images\.example ◐ Running 42% 42 B, 2\.0 KiB\/s node-7/,
    );
    expect(page).toMatch(/waits default VirtualMachineImage import from images\.example ○ Waiting 1 of 1 in the queue/);
    expect(names(await world.text('/queue'))).toEqual(['jammy']);
  });

  it('says which sources asked to wait', async () => {
    const world = await createConsoleWorld();
    const waiting = { message: 'quay.io asked to wait', until: new Date(world.clock.now + 90_000).toISOString() };
    world.kube.seed(dataImportCronKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { namespace: 'default', name: 'fedora' },
      spec: {},
      status: { waiting },
    } as never);
    const page = await text(world);
    expect(page).toContain('fedora default quay.io asked to wait in 90s');
  });

  it('reads no image that nothing moves for, however many there are', async () => {
    const world = await createConsoleWorld();
    for (let index = 0; index < 300; index += 1) seedImage(world, `n${index}`);
    world.kube.seed(jobs, aJob('n7', {}) as never);
    world.kube.calls.length = 0;
    const page = await world.text('/queue');
    expect(page).toContain(`since=jobs.batch%3A`);
    expect(world.kube.calls.filter(({ verb }) => verb === 'get')).toHaveLength(1);
    expect(world.kube.calls.filter(({ resource }) => resource === 'virtualmachineimages')).toHaveLength(3);
  });
});

describe('the page of backups', () => {
  const text = async (world: ConsoleWorld, path = '/backups') =>
    (await world.text(path)).replaceAll(/<[^>]*>|\s+/g, ' ').replaceAll(/ +/g, ' ');

  it('says which images a backup target has, and which it lacks', async () => {
    const world = await createConsoleWorld();
    const backup = { target: 's3/backups' };
    const kept = (status: 'True' | 'False') => [
      { type: 'DataReady', status, reason: 'BackingUp', message: 'the disk is being sent' },
    ];
    seedImage(world, 'safe', { phase: 'Available', virtualSize: 2 ** 30, backup, conditions: kept('True') });
    seedImage(world, 'open', { phase: 'Available', backup, conditions: kept('False') });
    const page = await text(world);
    expect(page).toContain('1 of 2 images are kept in s3/backups: disks of 1.0 GiB.');
    expect(page).toContain('open default ◐ BackingUp the disk is being sent');
    expect(await text(world, '/backups?namespace=others')).toContain('No image that you may see here is kept');
  });

  it('says what may not be read', async () => {
    const world = await createConsoleWorld();
    const denied = (resource: string) =>
      world.kube.failNext(
        { verb: 'list', resource },
        { error: new Denied(`rita cannot list ${resource}`), when: 'before' },
      );
    denied('virtualmachineimages');
    expect(await text(world)).toContain('rita cannot list virtualmachineimages');
    denied('jobs');
    denied('jobs');
    expect(await text(world, '/queue')).toContain('rita cannot list jobs');
  });
});
