// Asks a registry what a reference means now: one HEAD while nothing changes. Called by observe.ts.
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { indexTypes } from '#shared/clients/registry/manifest.ts';
import { selectPlatform } from '#shared/clients/registry/manifest.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';
import { chooseTag } from '#shared/clients/registry/tags.ts';
import type { Validators, Observation } from '#shared/golden/poll/observation.ts';
import { type RegistryCronSource, anyVersion } from '#shared/golden/source.ts';

/** Throws RegistryFailure and HttpFailure. `architecture` is used where the source names none. */
export const pollRegistry = async (
  client: RegistryClient,
  source: RegistryCronSource,
  known: Validators,
  architecture: string,
): Promise<Observation> => {
  const { digest } = source.image;
  if (digest !== undefined) {
    return { is: 'found', digest, message: 'the reference is pinned to a digest', memory: { sourceDigest: digest } };
  }
  const { image, note } = await tagged(client, source);
  const where = formatReference(image);
  const head = await client.head(image);
  const memory = { sourceDigest: head.digest };
  const suffix = `${note}${head.saidBy === undefined ? '' : `; ${head.saidBy} answered`}`;
  if (head.digest === known.sourceDigest)
    return { is: 'same', message: `${where} still has digest ${head.digest}${suffix}` };
  const found = { is: 'found', tag: image.tag, memory } as const;
  if (!indexTypes.includes(head.mediaType)) {
    return { ...found, digest: head.digest, message: `${where} has digest ${head.digest}${suffix}` };
  }
  const wanted = source.architecture ?? architecture;
  const manifest = await client.manifest({ ...image, digest: head.digest });
  const chosen = manifest.is === 'image' ? manifest.digest : selectPlatform(manifest.entries, wanted, where).digest;
  return { ...found, digest: chosen, message: `${where} has digest ${chosen} for linux/${wanted}${suffix}` };
};

interface Tagged {
  readonly image: Reference;
  /** `; passed over: …`, where something was. */
  readonly note: string;
}

const tagged = async (client: RegistryClient, { image, tags }: RegistryCronSource): Promise<Tagged> => {
  if (tags === undefined) return { image: { ...image, tag: image.tag ?? 'latest' }, note: '' };
  const all = await client.tags(image);
  const chosen = chooseTag(all, tags);
  if (chosen !== undefined) {
    const note = chosen.passedOver === '' ? '' : `; passed over: ${chosen.passedOver}`;
    return { image: { ...image, tag: chosen.tag }, note };
  }
  if (tags === anyVersion) return { image: { ...image, tag: 'latest' }, note: '; no tag is a version' };
  throw new RegistryFailure(
    'ImageNotFound',
    `${image.host}/${image.repository} has no tag within "${tags}"; it has ${all.length} tags`,
  );
};

/**
 * What registries answered within one tick: crons that follow one reference for several architectures, or in several ways, ask once. Made
 * by observe.ts; nothing is kept longer than the tick.
 */
export interface RoundAnswers {
  /** `client`, asking only what nobody with the same `access` asked in this round; without a round, everything. */
  sharing(client: RegistryClient, round: object | undefined, access: readonly (string | undefined)[]): RegistryClient;
}

export const createRoundAnswers = (): RoundAnswers => {
  const rounds = new WeakMap<object, Map<string, Promise<unknown>>>();
  return {
    sharing: (client, round, access) => {
      if (round === undefined) return client;
      const answers = rounds.get(round) ?? new Map<string, Promise<unknown>>();
      rounds.set(round, answers);
      const once =
        <T>(what: string, ask: (image: Reference) => Promise<T>) =>
        (image: Reference): Promise<T> => {
          const key = JSON.stringify([what, formatReference(image), ...access]);
          const answer = (answers.get(key) as Promise<T> | undefined) ?? ask(image);
          answers.set(key, answer);
          return answer;
        };
      return {
        head: once('head', (image) => client.head(image)),
        manifest: once('manifest', (image) => client.manifest(image)),
        tags: once('tags', (image) => client.tags(image)),
        referrers: (image) => client.referrers(image),
        blob: (image, digest, offset) => client.blob(image, digest, offset),
      };
    },
  };
};
