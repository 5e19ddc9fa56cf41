// Which servers may be asked for the source of a cron, by polls and where signatures are looked up.
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { type MirrorAccess, mirrorsOf } from '#shared/clients/http/mirrors.ts';
import { type ServerReach, extendReach } from '#shared/clients/http/reach.ts';
import { type RegistryAccess, placesOf } from '#shared/clients/registry/mirrors.ts';
import { serverOf } from '#shared/clients/registry/reference.ts';
import type { CronSource } from '#shared/golden/source.ts';
import type { LimitsLook } from './applied.ts';
import { reachOf, sourceRefusals } from './places.ts';
import { writtenByCron } from './wanted.ts';

interface PollReachOptions {
  readonly limits: LimitsLook;
  readonly registries: () => Promise<RegistryAccess & MirrorAccess>;
}

const mirrorHosts = (source: CronSource, access: RegistryAccess & MirrorAccess): readonly string[] => {
  if (source.type === 'registry')
    return [source.image.host, ...placesOf(source.image, access).map(({ host }) => host)].map(serverOf);
  return writtenByCron(source).flatMap(({ url }) => mirrorsOf(url, access).map((mirror) => new URL(mirror).host));
};

/** Throws HttpFailure where the source itself is not allowed: a limit may be newer than the cron. */
export const createPollReach =
  ({ limits: look, registries }: PollReachOptions) =>
  async (namespace: string, source: CronSource): Promise<ServerReach | undefined> => {
    const limits = await look(namespace);
    const sources = writtenByCron(source);
    const reach = reachOf(limits, sources);
    if (reach === undefined) return undefined;
    const [refusal] = sourceRefusals(limits, sources);
    if (refusal !== undefined) throw new HttpFailure('SourceNotAllowed', refusal);
    return extendReach(reach, mirrorHosts(source, await registries()));
  };
