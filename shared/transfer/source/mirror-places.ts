// The places of one file: which one is asked next, and what each has done so far. Used by mirrored.ts.
import type { HostHealth } from '#shared/clients/http/health.ts';
import { type ServedFrom, createServed } from '#shared/clients/http/served.ts';
import { isRetryable, messageOf } from '#shared/runtime/errors.ts';
import { type BackOffOptions, createBackOff } from '#shared/transfer/back-off.ts';
import { TransferError, isTransferError } from '#shared/transfer/fault.ts';
import type { ResumableSource, SourceFacts } from '#shared/transfer/source/source.ts';

export interface FilePlace {
  /** URL without anything secret. */
  readonly name: string;
  readonly host: string;
  /** Makes no retries itself. */
  readonly source: ResumableSource;
}

export interface PlacesOptions extends BackOffOptions {
  /** Mirrors in their order, then the file itself, which is always trusted. */
  readonly places: readonly FilePlace[];
  readonly health: HostHealth;
}

export interface Site extends FilePlace {
  /** When it last failed: a count that grows. */
  failedAt: number;
  /** What it served was not the file. */
  isDistrusted: boolean;
  /** In this pass: its file is not, or may not be, the one that the pass began with. */
  isOther: boolean;
  /** Located in this pass, and the same file as at the first place. */
  located: Promise<SourceFacts> | undefined;
}

/** A place that works, but whose file is another one, or may be. */
export class OtherFile extends TransferError {}

/** One request or stream: asks place after place; once all have failed, waits and begins again while retries are left. */
export interface Rounds {
  next(): Site;
  /** Throws the fault if it is final. */
  failed(site: Site, error: unknown): Promise<void>;
  progressed(bytes: number): void;
}

export interface Places {
  readonly sites: readonly Site[];
  rounds(): Rounds;
  /** It has sent bytes of the file. */
  served(site: Site): void;
  /** Places that have served since the last call are asked no more, except the file itself. Returns whether there are any. */
  distrust(fault: TransferError): boolean;
  /** A new pass: what was served before is forgotten. */
  restart(): void;
  readonly servedFrom: ServedFrom;
}

/** The error that decides what happens next: a retryable one if there is one, from whichever place. */
const chiefOf = (faults: ReadonlyMap<Site, unknown>): unknown => {
  const all = [...faults.values()];
  const chief = all.findLast(isRetryable) ?? all.at(-1);
  const others = all.filter((fault) => fault !== chief).map(messageOf);
  if (!isTransferError(chief) || others.length === 0) return chief;
  const { code, message, retryable, startOver, retryAfterSeconds } = chief;
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const whole = `${message}; elsewhere: ${others.join('; ')}`;
  return new TransferError(code, whole, { cause: chief, retryable, startOver, ...wait });
};

const startingOver = (fault: unknown): TransferError =>
  new TransferError('SourceChanged', `${messageOf(fault)}; the download starts over`, {
    cause: fault,
    startOver: true,
  });

type Blame = (site: Site, error: unknown) => void;

const createRounds = (options: PlacesOptions, sites: readonly Site[], blame: Blame): Rounds => {
  const { signal, health, onRetry } = options;
  const backOff = createBackOff(options);
  let tried = new Map<Site, unknown>();
  const left = (): readonly Site[] => sites.filter((site) => !site.isDistrusted && !site.isOther && !tried.has(site));
  return {
    progressed: (bytes) => backOff.progressed(bytes),
    next: () => {
      const ordered = left().toSorted((one, other) => one.failedAt - other.failedAt);
      // Hosts that rest are asked if no other is left.
      const site = ordered.find(({ host }) => health.take(host) === 0) ?? ordered[0];
      if (site === undefined) throw new TransferError('InternalFault', 'there is no place to ask');
      return site;
    },
    failed: async (site, error) => {
      signal.throwIfAborted();
      if (!isTransferError(error) || error.code === 'InternalFault') throw error;
      blame(site, error);
      if (error.startOver) throw error;
      site.isOther = error instanceof OtherFile;
      tried.set(site, error);
      if (left().length > 0) return onRetry(error, 0);
      const isElsewhere = sites.some(({ isOther }) => isOther);
      const chief = chiefOf(tried);
      tried = new Map();
      await backOff.afterFailure(chief).catch((last: unknown) => {
        throw isElsewhere && !signal.aborted ? startingOver(last) : last;
      });
    },
  };
};

export const createPlaces = (options: PlacesOptions): Places => {
  const { health } = options;
  const sites = options.places.map((place): Site => ({
    ...place,
    failedAt: 0,
    isDistrusted: false,
    isOther: false,
    located: undefined,
  }));
  const record = createServed();
  let failures = 0;
  let served = new Set<Site>();
  const blame: Blame = (site, error) => {
    failures += 1;
    site.failedAt = failures;
    record.failed(site.name, messageOf(error));
    if (isRetryable(error) && !(error instanceof OtherFile)) health.failed(site.host);
    else health.answered(site.host);
  };
  return {
    sites,
    rounds: () => createRounds(options, sites, blame),
    served: (site) => {
      served.add(site);
      record.began(site.name);
      health.answered(site.host);
    },
    distrust: (fault) => {
      const liars = [...served].filter((site) => site !== sites.at(-1));
      for (const site of liars) {
        site.isDistrusted = true;
        blame(site, fault);
      }
      return liars.length > 0;
    },
    restart: () => {
      served = new Set();
      for (const site of sites) {
        site.located = undefined;
        site.isOther = false;
      }
    },
    servedFrom: record.servedFrom,
  };
};
