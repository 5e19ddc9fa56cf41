import { X509Certificate, createPrivateKey } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TLSSocket, connect } from 'node:tls';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '#shared/api/foreign/kubernetes.ts';
import { type Secret, secrets } from '#shared/api/foreign/core.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { renewCertificate } from '#shared/certificate/renew.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';

const day = 24 * 3600 * 1000;
const start = Date.parse('2026-01-01T00:00:00Z');
const { configuration, authoritySecret, serverSecret, hosts } = admissionCertificate;

describe('a certificate', () => {
  const validity = { from: new Date(Date.now() - day), to: new Date(Date.now() + day) };

  it('is trusted by TLS clients for its names, and for no other', async () => {
    const authority = createAuthority('test', validity);
    const { certificate, key } = issueServer(authority, ['validate.example.svc', 'mutate.example.svc'], validity);
    const server = createServer({ cert: certificate, key }, (_request, response) => response.end()).listen(
      0,
      '127.0.0.1',
    );
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const ask = (servername: string, ca: string): Promise<string> =>
      new Promise((resolve) => {
        const socket: TLSSocket = connect({ host: '127.0.0.1', port, servername, ca }, () => {
          resolve(socket.authorized ? 'believed' : 'not believed');
          socket.end();
        });
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      });
    const other = createAuthority('test', validity).certificate;
    expect([
      await ask('validate.example.svc', authority.certificate),
      await ask('mutate.example.svc', authority.certificate),
      await ask('other.example.svc', authority.certificate),
      await ask('validate.example.svc', other),
    ]).toEqual(['believed', 'believed', 'ERR_TLS_CERT_ALTNAME_INVALID', expect.stringMatching(/CERT|SIGNATURE/)]);
    server.close();
  });

  it('contains the names it was created for, whatever they are', () => {
    const names = fc.array(fc.domain(), { minLength: 1, maxLength: 12 });
    const times = fc.date({ min: new Date('1990-01-01'), max: new Date('2099-12-31'), noInvalidDate: true });
    fc.assert(
      fc.property(names, times, (hostNames, to) => {
        const authority = createAuthority('test authority', { from: new Date(0), to });
        const { certificate, key } = issueServer(authority, hostNames, { from: new Date(0), to });
        const [issuer, read] = [new X509Certificate(authority.certificate), new X509Certificate(certificate)];
        expect(read.subjectAltName).toBe(hostNames.map((name) => `DNS:${name}`).join(', '));
        expect(Math.floor(read.validToDate.getTime() / 1000)).toBe(Math.floor(to.getTime() / 1000));
        expect([issuer.ca, read.ca, read.checkIssued(issuer), read.verify(issuer.publicKey)]).toEqual([
          true,
          false,
          true,
          true,
        ]);
        expect(read.checkPrivateKey(createPrivateKey(key))).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});

const aCluster = (): MemoryKube => {
  const kube = createMemoryKube();
  for (const type of [validatingWebhookConfigurations, mutatingWebhookConfigurations]) {
    kube.seed(type, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: type.kind,
      metadata: { name: configuration },
      webhooks: [
        { name: 'a', clientConfig: {} },
        { name: 'b', clientConfig: {} },
      ],
    });
  }
  return kube;
};

const text = (secret: Secret | undefined, key: string): string =>
  Buffer.from(secret?.data?.[key] ?? '', 'base64').toString();

interface Observed {
  readonly served: string;
  readonly authority: string;
  readonly trusted: readonly string[];
}

const look = async (kube: KubeClient): Promise<Observed> => {
  const get = (name: string) => kube.get(secrets, { namespace: systemNamespace, name });
  const found = await Promise.all(
    [validatingWebhookConfigurations, mutatingWebhookConfigurations].map((type) =>
      kube.get(type, { name: configuration }),
    ),
  );
  const bundles = found.flatMap((one) => one?.webhooks ?? []).map(({ clientConfig }) => clientConfig.caBundle ?? '');
  return {
    served: text(await get(serverSecret), 'tls.crt'),
    authority: text(await get(authoritySecret), 'tls.crt'),
    trusted: bundles.map((bundle) => Buffer.from(bundle, 'base64').toString()),
  };
};

/** Whether every webhook would believe this certificate at that time. */
const isBelieved = (served: string, { trusted }: Observed, now: number): boolean => {
  const certificate = new X509Certificate(served);
  if (certificate.validToDate.getTime() < now) return false;
  return trusted.every((bundle) =>
    (bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).some((pem) => {
      const authority = new X509Certificate(pem);
      return certificate.verify(authority.publicKey) && authority.validToDate.getTime() > now;
    }),
  );
};

describe('the certificate of admission', () => {
  it('is created when there is none, for both services, and every webhook trusts it', async () => {
    const kube = aCluster();
    await renewCertificate(kube, start);
    const observed = await look(kube);
    const certificate = new X509Certificate(observed.served);
    expect(hosts.map((name) => certificate.checkHost(name))).toEqual(hosts);
    expect([observed.trusted.length, isBelieved(observed.served, observed, start)]).toEqual([4, true]);
  });

  it('is kept while it is valid, without a write', async () => {
    const kube = aCluster();
    await renewCertificate(kube, start);
    const before = await look(kube);
    kube.calls.length = 0;
    await renewCertificate(kube, start + 50 * day);
    expect([await look(kube), kube.calls.filter(({ verb }) => verb !== 'get')]).toEqual([before, []]);
  });

  it('is trusted on every day of thirty years, also by clients that have not read the newest', async () => {
    const kube = aCluster();
    const certificates = new Set<string>();
    const authorities = new Set<string>();
    let before = '';
    for (let now = start; now < start + 30 * 365 * day; now += 10 * day) {
      await renewCertificate(kube, now);
      const observed = await look(kube);
      expect(isBelieved(observed.served, observed, now)).toBe(true);
      // A pod takes up a new Secret a minute later.
      expect(before === '' || isBelieved(before, observed, now)).toBe(true);
      certificates.add(observed.served);
      authorities.add(observed.authority);
      before = observed.served;
    }
    expect([certificates.size > 150, authorities.size]).toEqual([true, 5]);
  });

  it.each(['create', 'get', 'patch', 'replace'] as const)(
    'reaches the same state when a %s fails in between',
    async (verb) => {
      for (let skipped = 0; skipped < 4; skipped++) {
        const kube = aCluster();
        if (verb === 'replace') await renewCertificate(kube, start - 89 * day);
        let left = skipped;
        const failing: KubeClient = new Proxy(kube, {
          get: (target, name, receiver) => {
            const method: unknown = Reflect.get(target, name, receiver);
            const isMeant = name === verb || (verb === 'patch' && name === 'mergePatch');
            if (!isMeant) return method;
            return (...args: unknown[]) => {
              if (left-- === 0) throw new Unavailable('down');
              return (method as (...given: unknown[]) => unknown).apply(target, args);
            };
          },
        });
        await renewCertificate(failing, start).catch(() => undefined);
        await renewCertificate(kube, start);
        const observed = await look(kube);
        expect(isBelieved(observed.served, observed, start)).toBe(true);
      }
    },
  );

  it('is left to cert-manager when that manages it', async () => {
    const kube = aCluster();
    kube.seed(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        namespace: systemNamespace,
        name: serverSecret,
        annotations: { 'cert-manager.io/certificate-name': 'admission-tls' },
      },
    });
    await renewCertificate(kube, start);
    expect(kube.calls.filter(({ verb }) => verb !== 'get')).toEqual([]);
  });

  it('is created again when it is invalid', async () => {
    const kube = aCluster();
    await renewCertificate(kube, start);
    for (const name of [serverSecret, authoritySecret]) {
      kube.edit(secrets, { namespace: systemNamespace, name }, (secret) => {
        secret.data = { 'tls.crt': 'bm9uc2Vuc2U=' };
      });
    }
    await renewCertificate(kube, start);
    const observed = await look(kube);
    expect(isBelieved(observed.served, observed, start)).toBe(true);
  });
});
