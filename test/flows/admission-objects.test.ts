// The admission rules that read other objects, through kubectl: embedded or real API server, the webhooks, and the objects that a row lists.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { installCrds } from '#local-cluster/install.ts';
import { longhornCrds } from '#local-cluster/longhorn/crds.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { storageClasses } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Asked, aHarvesterImage } from '#test/support/admission.ts';
import { asWorker } from '#test/support/admission-worker.ts';
import { type AdmissionServer, asFunctions, sendAll, startAdmissionServer } from '#test/support/admission-server.ts';
import { createStage, grantRights } from '#test/support/admission-scenes.ts';
import { fillRows } from '#test/support/fill-rows.ts';
import { imageRows } from '#test/support/image-rows.ts';
import { exemptRows } from '#test/support/exempt-rows.ts';
import { aPolicy } from '#test/support/policy-rows.ts';
import { protectedRows } from '#test/support/protected-rows.ts';
import { drawn } from '#test/support/random.ts';
import { hasKubectl } from '#test/support/tools.ts';

const allRows = [...imageRows, ...protectedRows];
/** The rule whose answer may be unknown, in a test of its own. */
const aboutRights = 'harvester/source-image-allowed';
/** A Worker applies the same rules: a part of them shows that it can read what they read. */
const hosts = [
  ['functions', asFunctions, allRows],
  ['a Worker', asWorker, [...drawn(allRows, 1 / 6), ...allRows.filter(({ id }) => id === aboutRights)]],
] as const;
const picks = ['allowed', 'denied'] as const;
const user = 'jane';

/** A row as it is sent. */
interface Sent {
  readonly title: string;
  readonly says: RegExp;
  /** Default: the administrator. */
  readonly as?: string | undefined;
  readonly asked: Asked;
}
type Filled = { readonly title: string; readonly asked: Asked; readonly becomes: object };

const verbOf = ({ object, oldObject }: Asked): 'create' | 'replace' | 'delete' => {
  if (object === undefined) return 'delete';
  return oldObject === undefined ? 'create' : 'replace';
};
const objectOf = ({ object, oldObject }: Asked): object => (object ?? oldObject)!;

describe.skipIf(!hasKubectl()).each(hosts)(
  'admission of %s, when it depends on other objects',
  { timeout: 300_000 },
  (_, functions, rows) => {
    let server: AdmissionServer;
    const sent = { allowed: [] as Sent[], denied: [] as Sent[], exempt: [] as Sent[], filled: [] as Filled[] };

    const prepare = async (kube: KubeClient): Promise<void> => {
      const stage = await createStage(kube);
      await grantRights(
        kube,
        user,
        rows.flatMap(({ rights = [] }) => rights),
      );
      for (const [index, { id, what, given, rights, says, ...row }] of rows.entries()) {
        for (const pick of picks) {
          const asked = await stage.set({ given, asked: row[pick] }, `row-${index}-${pick}`);
          const as = rights === undefined ? undefined : user;
          sent[pick].push({ title: `${id} ${what}`, says, as, asked });
        }
      }
      for (const [index, { ids, what, given, asked: pure }] of exemptRows.entries()) {
        const asked = await stage.set({ given, asked: pure }, `exempt-${index}`);
        sent.exempt.push({ title: `${ids.join()} ${what}`, says: /^$/, as: pure.username, asked });
      }
      for (const [row, { id, given, cases }] of fillRows.entries()) {
        for (const [index, { what, object, becomes }] of cases.entries()) {
          const placed = await stage.set({ given, asked: { object } }, `fill-${row}-${index}`, becomes);
          sent.filled.push({ title: `${id} ${what}`, asked: placed, becomes: placed.also });
        }
      }
    };

    beforeAll(async () => {
      server = await startAdmissionServer(prepare, functions);
    });
    afterAll(() => server?.close());

    /** Sent in one call per verb and user; the message for each. */
    const sendInGroups = async (all: readonly Sent[], isWrong: (said: string | undefined, row: Sent) => boolean) => {
      const groups = Map.groupBy(all, ({ as = '', asked }) => `${verbOf(asked)} ${as}`);
      const wrong: string[] = [];
      for (const group of groups.values()) {
        const [{ as, asked }] = group as [Sent];
        const flags = as === undefined ? [] : ['--as', as];
        const items = group.map((one) => objectOf(one.asked));
        const { passed, refused } = await sendAll(server.kubectl, verbOf(asked), items, flags);
        const isWhole =
          passed.length + refused.length === group.length && (passed.length === 0 || refused.length === 0);
        const odd = group.flatMap((row, index) =>
          isWrong(refused[index], row) ? [`${row.title}: ${refused[index] ?? passed[index]}`] : [],
        );
        const mixed = `of ${group.length} passed\n${passed.join('\n')}\nand were refused\n${refused.join('\n')}`;
        wrong.push(...(isWhole ? odd : [mixed]));
      }
      return wrong;
    };

    it('accepts the allowed request of every rule', async () => {
      expect(await sendInGroups(sent.allowed, (said) => said !== undefined)).toEqual([]);
    });

    it('rejects the denied request of every rule, and says why', async () => {
      expect(await sendInGroups(sent.denied, (said, { says }) => said === undefined || !says.test(said))).toEqual([]);
    });

    it('accepts requests that only look similar to rejected ones', async () => {
      expect(await sendInGroups(sent.exempt, (said) => said !== undefined)).toEqual([]);
    });

    it('sets defaults, and keeps values that were set', async () => {
      const items = sent.filled.map(({ asked }) => objectOf(asked));
      const args = ['create', '--dry-run=server', '--validate=false', '-o', 'yaml', '-f', '-'];
      const { stdout, stderr } = await server.kubectl(args, { apiVersion: 'v1', kind: 'List', items });
      expect(stderr).toBe('');
      const made = parseAllDocuments(stdout).map((document) => document.toJS() as object);
      const lists = made.flatMap((one) => ('items' in one ? (one.items as object[]) : [one]));
      for (const [index, { title, becomes }] of sent.filled.entries()) {
        expect({ title, ...lists[index] }).toMatchObject({ title, ...becomes });
      }
    });

    it('sets the default class of the cluster (defaults/one-storage-class)', async () => {
      const { asked } = sent.filled.find(({ title }) => title.startsWith('defaults/backend-and-retry'))!;
      await server.kube.create(storageClasses, {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
        provisioner: 'rows.example',
      });
      const args = ['create', '--dry-run=server', '--validate=false', '-o', 'yaml', '-f', '-'];
      const { stdout } = await server.kubectl(args, objectOf(asked));
      expect(stdout).toMatch(/targetStorageClassName: standard/);
      expect(stdout).toMatch(/harvesterhci.io\/storageClassName: standard/);
    });

    it('records the user who decided, whatever the request says, and keeps that (policy/signed)', async () => {
      const policy = aPolicy({}, { name: 'signed', namespace: 'default' });
      const marked = (more: object) => ({
        ...policy,
        spec: { ...policy.spec, bad: [{ version: 'a', digest: 'sha256:a', reason: 'broken', ...more }] },
      });
      const apply = async (object: object) => (await server.kubectl(['apply', '-f', '-'], object)).stderr;
      const marksNow = async () =>
        (await server.kube.get(goldenImagePolicyKind.type, { namespace: 'default', name: 'signed' }))?.spec.bad;
      expect(await apply(marked({ by: 'somebody else', at: '2020-01-01T00:00:00Z' }))).not.toContain('Error');
      const first = await marksNow();
      expect(first).toMatchObject([
        { by: expect.not.stringMatching('somebody else'), at: expect.stringMatching(/^20/) },
      ]);
      expect(await apply(marked({}))).toBe('');
      expect(await marksNow()).toEqual(first);
      await apply(marked({ by: 'somebody else' }));
      expect(await marksNow()).toEqual(first);
    });

    it('accepts repeated applies of an image, and keeps its defaults', async () => {
      const { metadata, ...rest } = aHarvesterImage({ displayName: 'applied' }, { name: 'applied', uid: undefined });
      const apply = (more: object = {}) =>
        server.kubectl(['apply', '--server-side', '-f', '-'], { ...rest, metadata: { ...metadata, ...more } });
      for (const more of [{}, {}, { labels: { mine: 'x' } }]) {
        const { stdout, stderr } = await apply(more);
        expect([stdout, stderr]).toEqual([expect.stringContaining('serverside-applied'), '']);
      }
      const { stdout } = await server.kubectl(['get', 'vmimage', 'applied', '-o', 'yaml']);
      expect(stdout).toMatch(/harvesterhci.io\/imageDisplayName: applied\n +mine: x/);
      expect(stdout).toMatch(/targetStorageClassName: standard/);
    });

    it('returns warnings about a second default class and an unknown driver, and accepts both (class/known-driver, class/one-default)', async () => {
      const mark = { 'storageclass.kubernetes.io/is-default-class': 'true' };
      const second = {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'second', annotations: mark },
        provisioner: 'rows.example',
      };
      const { stdout, stderr } = await server.kubectl(['create', '--dry-run=server', '-f', '-'], second);
      expect(stdout).toMatch(/second created \(server dry run\)/);
      expect(stderr).toMatch(/Warning: nothing is known about the driver rows.example/);
      expect(stderr).toMatch(/Warning: storage class standard is the default as well: the newest one is used/);
    });

    it('rejects a Longhorn image once Longhorn is uninstalled (images/backend-installed)', async () => {
      const { asked } = sent.filled.find(({ title }) => title.startsWith('defaults/backend-and-retry'))!;
      const create = async () => sendAll(server.kubectl, 'create', [objectOf(asked)]);
      expect((await create()).passed).toHaveLength(1);
      await server.kubectl(['delete', 'crd', 'backingimages.longhorn.io']);
      await vi.waitFor(
        async () => expect((await create()).refused.join()).toMatch(/spec\.backend.*Longhorn is not installed/s),
        { timeout: 120_000 },
      );
      await installCrds(server.kube, longhornCrds as readonly KubeObject[]);
    });

    it('asks for a retry when it is unknown whether the author may see an image (harvester/access-answered)', async () => {
      const { asked } = sent.allowed.find(({ title }) => title.startsWith(aboutRights))!;
      const create = async () => sendAll(server.kubectl, 'create', [objectOf(asked)], ['--as', user]);
      expect((await create()).passed).toHaveLength(1);
      await server.kubectl(['delete', 'clusterrolebinding', 'bullion-admission']);
      // An authorizer may take a moment to observe the change.
      await vi.waitFor(
        async () => expect((await create()).refused.join()).toMatch(/could not decide|failed calling webhook/),
        {
          timeout: 120_000,
        },
      );
    });
  },
);
