// The admission rules that need only an object and its old version, through kubectl: embedded or real API server, and the webhooks.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Draft } from '#test/support/admission.ts';
import { admissionRows } from '#test/support/admission-rows.ts';
import { asWorker } from '#test/support/admission-worker.ts';
import { type AdmissionServer, asFunctions, startAdmissionServer } from '#test/support/admission-server.ts';
import type { AdmissionRow } from '#test/support/rule-row.ts';
import { drawn } from '#test/support/random.ts';
import { hasKubectl } from '#test/support/tools.ts';

/** A Worker applies the same rules: a part of them shows that requests reach them. */
const hosts = [
  ['functions', asFunctions, admissionRows],
  ['a Worker', asWorker, drawn(admissionRows, 1 / 6)],
] as const;

/** The object as it is sent: under a separate name unless the row is about names. */
const named = ({ metadata: all, ...draft }: Draft, name: string): Draft => {
  const metadata: Record<string, unknown> = { ...all, uid: undefined };
  const own = ['ubuntu', 'image-a', undefined].includes(metadata['name'] as string | undefined);
  const spec = draft.spec?.['displayName'] === 'leap' ? { ...draft.spec, displayName: name } : draft.spec;
  return { ...draft, metadata: { ...metadata, ...(own ? { name } : {}) }, ...(spec === undefined ? {} : { spec }) };
};

describe.skipIf(!hasKubectl()).each(hosts)(
  'admission of %s, through kubectl',
  { timeout: 300_000 },
  (_, functions, rows) => {
    let server: AdmissionServer;
    beforeAll(async () => {
      server = await startAdmissionServer(() => Promise.resolve(), functions);
    });
    afterAll(() => server?.close());

    /** One call for all: the message of kubectl for each. Accepted ones are named on standard output; errors are in the order of the others. */
    const sendAll = async (verb: 'create' | 'replace', objects: readonly Draft[]): Promise<readonly string[]> => {
      const list = { apiVersion: 'v1', kind: 'List', items: objects };
      const { stdout, stderr } = await server.kubectl([verb, '--dry-run=server', '--validate=false', '-f', '-'], list);
      const errors = stderr.split(/\n(?=Error from server|The |error: )/);
      return objects.map(({ metadata }) => {
        const passed = stdout.split('\n').find((line) => line.includes(`/${String(metadata['name'])} `));
        return passed ?? errors.shift() ?? 'kubectl said nothing';
      });
    };

    type Pick = 'allowed' | 'denied';
    const isAsItShould = (pick: Pick, { says }: AdmissionRow, said: string): boolean =>
      pick === 'denied' ? says.test(said) : /(created|replaced) \(server dry run\)/.test(said);
    /** Rows with a wrong result, with the message. */
    const tryAll = async (verb: 'create' | 'replace', pick: Pick, rows: readonly AdmissionRow[]) => {
      const said = await sendAll(
        verb,
        rows.map((row) =>
          named(row[pick], `${verb}-${admissionRows.indexOf(row)}-${verb === 'create' ? pick : 'row'}`),
        ),
      );
      return rows.flatMap((row, index) =>
        isAsItShould(pick, row, said[index] ?? '') ? [] : [{ row, said: `${row.id} ${pick}: ${said[index]}` }],
      );
    };

    const creations = rows.filter(({ before }) => before === undefined);
    const updates = rows.filter(({ before }) => before !== undefined);

    it.each(['allowed', 'denied'] as const)('for every rule about creation, the %s object', async (pick) => {
      const wrong = await tryAll('create', pick, creations);
      expect(wrong.map(({ said }) => said)).toEqual([]);
    });

    it('for every rule about changes, the allowed and the denied change', async () => {
      const items = updates.map((row) => named(row.before!, `replace-${admissionRows.indexOf(row)}-row`));
      const list = { apiVersion: 'v1', kind: 'List', items };
      await server.kubectl(['create', '--validate=false', '-f', '-'], list);
      for (const pick of ['allowed', 'denied'] as const) {
        const wrong = await tryAll('replace', pick, updates);
        expect(wrong.map(({ said }) => said)).toEqual([]);
      }
    });
  },
);
