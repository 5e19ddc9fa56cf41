// The ways into a store: for long or for a while, by path or by host name, with an authority of its own. Each is gone by the function and by the
// Jobs it starts, there and back, against a live store behind TLS and a proxy that knows its name.
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as forward } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Job, jobs, secrets } from '#shared/api/foreign/core.ts';
import { type BackupImageObject, imageTypes, readImage } from '#shared/backup/image.ts';
import { createOpenTarget } from '#shared/backup/open.ts';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { type JobSource, toTransferSource } from '#shared/populate/source.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { type BackupStore, backupBucket, backupCredentials, startBackupStore } from '#test/support/backup.ts';
import { type MemoryCluster, backedUp, conditionOf, createMemoryCluster } from '#test/support/backup-world.ts';
import { aHyperCloudImage, testSettings } from '#test/support/builders.ts';
import { type ForwardProxy, startForwardProxy } from '#test/support/forward-proxy.ts';
import { specOf } from '#test/support/transfer-secret.ts';

const mib = 2 ** 20;
const domain = 'store.example';
const temporary = { accessKeyId: 'guest', secretAccessKey: 'guest-s3cret', sessionToken: 'token-of-guest' };
const hour = 3_600_000;
const hyperCloud = imageTypes[1]!;

const forever = { accessKeyId: backupCredentials.accessKeyId, secretKey: ` ${backupCredentials.secretAccessKey}\n` };
const forAWhile = {
  AWS_ACCESS_KEY_ID: temporary.accessKeyId,
  AWS_SECRET_ACCESS_KEY: temporary.secretAccessKey,
  AWS_SESSION_TOKEN: `${temporary.sessionToken}\n`,
};

describe('a store behind TLS', { timeout: 240_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-store-access-'));
  const disk = join(dir, 'disk.img');
  const authority = createAuthority('an authority', {
    from: new Date(Date.now() - hour),
    to: new Date(Date.now() + hour),
  });
  let backup: BackupStore;
  let front: Server;
  let proxy: ForwardProxy;
  beforeAll(async () => {
    writeFileSync(disk, Buffer.concat([randomBytes(2 * mib), Buffer.alloc(8 * mib), randomBytes(mib)]));
    backup = await startBackupStore(join(dir, 'store'), { credentials: [temporary], domain });
    const names = [domain, `*.${domain}`];
    const pair = issueServer(authority, names, { from: new Date(Date.now() - hour), to: new Date(Date.now() + hour) });
    front = createServer({ cert: pair.certificate, key: pair.key }, (incoming, response) => {
      const { method, url: path, headers } = incoming;
      const onward = forward(
        { host: '127.0.0.1', port: new URL(backup.server.url).port, method, path, headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on('error', () => response.destroy());
      incoming.pipe(onward);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const { port } = front.address() as AddressInfo;
    proxy = await startForwardProxy({ ports: { [`${domain}:443`]: port, [`${backupBucket}.${domain}:443`]: port } });
  });
  afterAll(async () => {
    await proxy.close();
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
    await backup.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const giveSecret = (cluster: MemoryCluster, data: Readonly<Record<string, string>>): void => {
    for (const namespace of ['default', 'bullion-system'])
      cluster.kube.edit(secrets, { namespace, name: 'backup-target' }, (secret) => {
        secret.data = Object.fromEntries(
          Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
        );
      });
  };
  const cluster = (data: Readonly<Record<string, string>>, fields: Readonly<Record<string, string>>): MemoryCluster => {
    const proxies = { https: proxy.url, none: [] };
    const made = createMemoryCluster(new Map(), {
      open: createOpenTarget({ allowedAddresses: [], proxies }),
      settings: { ...testSettings, proxies },
    });
    giveSecret(made, data);
    made.setTarget({ type: 's3', endpoint: `https://${domain}/`, bucketName: backupBucket, ...fields });
    return made;
  };
  /** As the kubelet does: the content of the namespace's Secret is at the path in the spec, and nothing else is. */
  const mounted = (over: object, data: Readonly<Record<string, string>>): object => {
    const secretDir = mkdtempSync(join(dir, 'secret-'));
    for (const [key, value] of Object.entries(data)) writeFileSync(join(secretDir, key), value);
    return { ...over, secretDir };
  };
  const transfer = async (given: object) => {
    mkdirSync(join(dir, 'scratch'), { recursive: true });
    const spec = TransferSpec.parse({ ...given, scratchDir: join(dir, 'scratch') });
    const signal = new AbortController().signal;
    return runTransfer(spec, { run: 'run', signal, send: () => Promise.resolve(), log: () => {} });
  };
  const wanted = (name: string): BackupImageObject => backedUp(aHyperCloudImage({ metadata: { name } }));

  const { certificate } = authority;
  it.each([
    { who: 'forever', by: 'path', access: forever, style: 'false', ca: { 'ca.crt': certificate }, more: {} },
    { who: 'forever', by: 'host name', access: forever, style: 'true', ca: {}, more: { cert: certificate } },
    { who: 'for a while', by: 'path', access: forAWhile, style: 'false', ca: {}, more: { cert: certificate } },
    { who: 'for a while', by: 'host name', access: forAWhile, style: 'true', ca: { AWS_CERT: certificate }, more: {} },
  ])(
    'accepts clients that authenticate as $who, by $by, with a custom authority',
    async ({ access, style, ca, more }) => {
      const virtualHostedStyle = style;
      const name = `image-${randomBytes(4).toString('hex')}`;
      const secret: Readonly<Record<string, string>> = { ...access, ...ca };
      const one = cluster(secret, { virtualHostedStyle, ...more });
      const image = one.ready(wanted(name));
      proxy.requests.length = 0;
      await one.tick();
      const spec = TransferSpec.parse(specOf(one.kube, one.kube.all<Job>(jobs)[0]!));
      const kept = await transfer({
        ...spec,
        source: { type: 'volume', path: disk },
        backup: { into: mounted(spec.backup!.into, secret) },
      });
      const made = kept.outcome === 'succeeded' ? (kept.backup?.disk ?? '') : JSON.stringify(kept);
      expect(made).toMatch(/^[0-9a-f]{64}$/);
      one.finishJob(image, made);
      await one.tick();
      expect(conditionOf(await one.image(image), 'MetadataReady')).toMatchObject({ status: 'True' });

      const two = cluster(secret, { virtualHostedStyle, ...more });
      await two.tick();
      const restored = readImage(hyperCloud, (await two.image(image))!)!.image;
      expect(restored.faults).toEqual([]);
      const target = join(dir, `${name}.img`);
      const back = await transfer({
        mode: 'import',
        source: mounted(
          toTransferSource(restored.source as JobSource, { owner: restored.ref, settings: testSettings }),
          secret,
        ),
        target: { path: target, volumeMode: 'Filesystem', capacityBytes: 64 * mib },
        limits: spec.limits,
        allowedAddresses: [],
        proxies: spec.proxies,
      });
      expect(back).toMatchObject({ outcome: 'succeeded' });
      expect(readFileSync(target).equals(readFileSync(disk))).toBe(true);
      const host = virtualHostedStyle === 'true' ? `${backupBucket}.${domain}` : domain;
      expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT ${host}:443`]));
      const shown = JSON.stringify([one, two].map(({ kube }) => kube.all().filter(({ kind }) => kind !== 'Secret')));
      for (const word of [backupCredentials, temporary].map(({ secretAccessKey }) => secretAccessKey))
        expect(shown).not.toContain(word);
      expect(shown).not.toContain(temporary.sessionToken);
    },
  );

  it('reports untrusted certificates and rejected credentials, and recovers after the next check once they are corrected', async () => {
    const one = cluster({ ...forAWhile, AWS_SESSION_TOKEN: 'of-yesterday' }, {});
    const image = one.ready(wanted('mended'));
    const told = async () => conditionOf(await one.image(image), 'MetadataReady');
    await one.tick();
    expect(await told()).toMatchObject({ status: 'False', reason: 'BackupTargetUnavailable' });
    expect((await told())?.message).toMatch(/certificate/);
    one.setTarget({
      type: 's3',
      endpoint: `https://${domain}`,
      bucketName: backupBucket,
      cert: `\n${authority.certificate}\n`,
    });
    await one.tick();
    expect((await told())?.message).toMatch(/the session token is wrong: check the Secret/);
    await backup.store.write(`harvester/vmimage-data/disks/${'d'.repeat(64)}`, Buffer.from('table'));
    giveSecret(one, forAWhile);
    await one.tick();
    one.finishJob(image, 'd'.repeat(64));
    await one.tick();
    expect(await told()).toMatchObject({ status: 'True', reason: 'Written' });
  });
});
