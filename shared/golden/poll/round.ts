// What registries answered within one tick: crons that follow one reference for several architectures, or in several ways, ask once. Made by
// observe.ts; nothing is kept longer than the tick.
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';

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
        blob: (image, digest, offset) => client.blob(image, digest, offset),
      };
    },
  };
};
