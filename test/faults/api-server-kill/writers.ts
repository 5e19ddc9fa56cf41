// Clients that write ConfigMaps as fast as they are answered, until the server is killed. Each uses names of its own, so that they do not conflict.
import { createHash } from 'node:crypto';
import { errors } from 'undici';
import type { Ledger, Shown } from '#test/faults/api-server-kill/ledger.ts';
import type { Answer, Http } from '#test/support/api-server/http.ts';
import type { Random } from '#test/support/random.ts';

export const collection = '/api/v1/namespaces/default/configmaps';
export const selector = 'labelSelector=kill%3Dme';

/** Bytes of most objects; a few are so large that they need many pages of the database at once. */
const usualSize = 8_000;
const largeSize = 300_000;

export interface ConfigMap {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data: { readonly id: string; readonly text: string };
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 12);

/** An incomplete object differs from the sent one by its digest. */
export const toShown = ({ metadata, data }: ConfigMap): Shown => ({
  name: metadata.name,
  content: `${data.id}/${data.text.length}/${digestOf(data.text)}`,
  version: Number(metadata.resourceVersion),
});

const buildConfigMap = (name: string, random: Random, known: Shown | undefined): ConfigMap => {
  const size = random.chance(0.02) ? largeSize : random.below(usualSize);
  const id = String(random.below(2 ** 31));
  const metadata = { name, labels: { kill: 'me' }, resourceVersion: known === undefined ? '' : String(known.version) };
  return { metadata, data: { id, text: `${id} `.repeat(Math.ceil(size / (id.length + 1))) } };
};

const succeeded = ({ status, text }: Answer, what: string): Answer => {
  if (status === 200 || status === 201) return { status, text };
  throw new Error(`${what} was answered with ${status}: ${text.slice(0, 500)}`);
};

const write = async (http: Http, ledger: Ledger, random: Random, name: string): Promise<void> => {
  const known = ledger.known(name);
  if (known !== undefined && random.chance(0.25)) {
    const acknowledge = ledger.begin({ name, type: 'DELETED', content: known.content });
    succeeded(await http.call('DELETE', `${collection}/${name}`), `the deletion of ${name}`);
    return acknowledge(undefined);
  }
  const sent = buildConfigMap(name, random, known);
  const isNew = known === undefined;
  const acknowledge = ledger.begin({ ...toShown(sent), type: isNew ? 'ADDED' : 'MODIFIED' });
  const answer = await http.call(isNew ? 'POST' : 'PUT', isNew ? collection : `${collection}/${name}`, sent);
  const { text } = succeeded(answer, `the write of ${name}`);
  acknowledge(toShown(JSON.parse(text) as ConfigMap).version);
};

const socketCodes = ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'];

const isCut = (error: unknown): boolean =>
  error instanceof errors.UndiciError || socketCodes.includes((error as NodeJS.ErrnoException).code ?? '');

/** Resolves when the connection breaks. Throws on an invalid response of the server. */
export const writeUntilCut = async (http: Http, ledger: Ledger, random: Random, names: readonly string[]) => {
  try {
    for (;;) await write(http, ledger, random, random.pick(names));
  } catch (error) {
    if (!isCut(error)) throw error;
  }
};
