// One file at several places: mirrors in their order, then the file itself. What one of them cannot give is asked of the next. An interrupted transfer
// continues at another place only if that is known to have the same bytes; else it starts over.
import { createTrail } from '#shared/transfer/source/http/stream.ts';
import {
  OtherFile,
  type Places,
  type PlacesOptions,
  type Site,
  createPlaces,
} from '#shared/transfer/source/mirror-places.ts';
import type { ByteSource, SourceFacts } from '#shared/transfer/source/source.ts';

export interface MirroredSourceOptions extends PlacesOptions {
  /** The transfer compares the whole file with a checksum before it is used. */
  readonly hasChecksum: boolean;
}

/** The bytes at two places are the same: by a digest that both state, by a checksum that is compared later, or by the same strong tag. */
export const isSameFile = (one: SourceFacts, other: SourceFacts, hasChecksum: boolean): boolean => {
  if (one.size === undefined || one.size !== other.size || !one.head.equals(other.head)) return false;
  if (!other.isPinned || (one.hasRanges && !other.hasRanges)) return false;
  if (one.digest !== undefined && other.digest !== undefined) return one.digest === other.digest;
  // A date is no proof: files that were copied at the same time have the same.
  const isTagged = one.identity?.startsWith('"') === true;
  return hasChecksum || (isTagged && one.identity === other.identity);
};

/** Locates the file at each place when it is first needed there. */
const createLocator = (hasChecksum: boolean) => {
  let pinned: SourceFacts | undefined;
  const locate = async ({ name, source }: Site): Promise<SourceFacts> => {
    const facts = await source.probe();
    if (pinned !== undefined && !isSameFile(pinned, facts, hasChecksum))
      throw new OtherFile('SourceChanged', `${name} has another file, or does not show that it is the same`);
    pinned ??= facts;
    return facts;
  };
  return {
    forget: () => {
      pinned = undefined;
    },
    located: (site: Site): Promise<SourceFacts> => {
      site.located ??= locate(site).catch((error: unknown) => {
        site.located = undefined;
        throw error;
      });
      return site.located;
    },
  };
};

const anywhere = async <T>(places: Places, use: (site: Site) => Promise<T>): Promise<T> => {
  const rounds = places.rounds();
  for (;;) {
    const site = rounds.next();
    try {
      const result = await use(site);
      places.served(site);
      return result;
    } catch (error) {
      await rounds.failed(site, error);
    }
  }
};

async function* stream(
  places: Places,
  located: (site: Site) => Promise<SourceFacts>,
): AsyncGenerator<Buffer, void, undefined> {
  const rounds = places.rounds();
  const trail = createTrail();
  for (;;) {
    const site = rounds.next();
    try {
      await located(site);
      for await (const chunk of site.source.stream(trail.reached())) {
        places.served(site);
        trail.add(chunk);
        rounds.progressed(chunk.length);
        yield chunk;
      }
      return;
    } catch (error) {
      await rounds.failed(site, error);
    }
  }
}

export const createMirroredSource = ({ hasChecksum, ...options }: MirroredSourceOptions): ByteSource => {
  const places = createPlaces(options);
  const { located, forget } = createLocator(hasChecksum);
  const readInto = (offset: number, target: Uint8Array): Promise<void> =>
    anywhere(places, async (site) => {
      await located(site);
      await site.source.readInto(offset, target);
    });
  return {
    probe: () => {
      forget();
      places.restart();
      return anywhere(places, located);
    },
    readInto,
    read: async (offset, length) => {
      const target = Buffer.allocUnsafe(length);
      await readInto(offset, target);
      return target;
    },
    stream: () => stream(places, located),
    distrust: (fault) => places.distrust(fault),
    servedFrom: places.servedFrom,
    receivedBytes: () => places.sites.reduce((total, { source }) => total + source.receivedBytes(), 0),
    close: async () => {
      for (const { source } of places.sites) await source.close();
    },
  };
};
