// The responses that clients of a killed server received, and whether the restarted server is consistent with them.

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One write of one object. Each write has different content. */
export interface Write {
  readonly name: string;
  readonly type: EventType;
  /** The content of the object after the write; for a deletion, its last content. */
  readonly content: string;
}

/** An object, or (with a type) an event of a watch, as returned by the server. */
export interface Shown {
  readonly name: string;
  readonly content: string;
  readonly version: number;
}

export interface ShownEvent extends Shown, Write {}

interface Took extends Write {
  /** Unknown for deletions, and for writes whose response was lost until a list shows them. */
  readonly version: number | undefined;
}

interface Pending extends Write {
  /** The newest known version when the write started: its own version must be newer. */
  readonly earlier: number;
}

export interface Ledger {
  /** Returns a function that records the acknowledgement of the server, and the version if it contained one. */
  readonly begin: (write: Write) => (version: number | undefined) => void;
  /** The state of an object; undefined if it does not exist. */
  readonly known: (name: string) => Shown | undefined;
  /** Compares with a list taken after a restart. A write whose response was lost may have happened or not; from now on the list decides. */
  readonly settle: (list: readonly Shown[], version: number) => void;
  /** Compares with everything that a watch received since the last call, across all restarts. */
  readonly checkEvents: (events: readonly ShownEvent[]) => void;
  /** Forgets writes that were not compared with events, for a watch that has to start over. */
  readonly skipEvents: () => void;
  /** Any other violation. */
  readonly report: (fault: string) => void;
  readonly faults: readonly string[];
  readonly counts: Readonly<Record<'acknowledged' | 'cutOff' | 'cutOffButDone', number>>;
}

export const createLedger = (): Ledger => {
  const states = new Map<string, Shown>();
  const pending = new Map<string, Pending>();
  const faults: string[] = [];
  const counts = { acknowledged: 0, cutOff: 0, cutOffButDone: 0 };
  let history: Took[] = [];
  let newest = 0;

  const take = (write: Write, version: number | undefined): void => {
    history.push({ ...write, version });
    if (write.type === 'DELETED' || version === undefined) states.delete(write.name);
    else states.set(write.name, { ...write, version });
    newest = Math.max(newest, version ?? 0);
  };

  const checkOrder = ({ name, earlier }: Pending, version: number): void => {
    if (!(version > earlier)) faults.push(`${name}: version ${version} was given after ${earlier}`);
  };

  const settleOne = (name: string, shown: Shown | undefined): void => {
    const before = states.get(name);
    if (isSame(before, shown)) return;
    const write = pending.get(name);
    const isDone =
      write?.type === 'DELETED' ? shown === undefined : write !== undefined && write.content === shown?.content;
    if (write === undefined || !isDone) faults.push(`${name}: ${describe(before)} became ${describe(shown)}`);
    else {
      if (shown !== undefined) checkOrder(write, shown.version);
      counts.cutOffButDone += 1;
      take(write, shown?.version);
    }
  };

  return {
    faults,
    counts,
    report: (fault) => void faults.push(fault),
    begin: (write) => {
      const begun = { ...write, earlier: newest };
      pending.set(write.name, begun);
      return (version) => {
        pending.delete(write.name);
        counts.acknowledged += 1;
        if (version !== undefined) checkOrder(begun, version);
        take(write, version);
      };
    },
    known: (name) => states.get(name),
    settle: (list, version) => {
      const shown = new Map(list.map((item) => [item.name, item]));
      if (new Set(list.map((item) => item.version)).size < list.length) faults.push('two objects have one version');
      if (version < newest) faults.push(`the list is of version ${version}, but ${newest} was acknowledged`);
      for (const name of new Set([...states.keys(), ...pending.keys(), ...shown.keys()]))
        settleOne(name, shown.get(name));
      counts.cutOff += pending.size;
      pending.clear();
    },
    checkEvents: (events) => {
      faults.push(...compareEvents(history, events));
      history = [];
    },
    skipEvents: () => {
      history = [];
    },
  };
};

const isSame = (one: Shown | undefined, other: Shown | undefined): boolean =>
  one?.version === other?.version && one?.content === other?.content;

const describe = (shown: Shown | undefined): string =>
  shown === undefined ? 'nothing' : `version ${shown.version} (${shown.content})`;

/** Versions increase, and each object went through the states that were written to it, each reported once. */
const compareEvents = (history: readonly Took[], events: readonly ShownEvent[]): string[] => {
  const backwards = events.flatMap(({ version }, index) => {
    const before = events[index - 1]?.version ?? 0;
    return version > before ? [] : [`event ${version} came after event ${before}`];
  });
  const written = Map.groupBy(history, ({ name }) => name);
  const observed = Map.groupBy(events, ({ name }) => name);
  const wrong = [...new Set([...written.keys(), ...observed.keys()])].flatMap((name) =>
    compareOne(name, written.get(name) ?? [], observed.get(name) ?? []),
  );
  return [...backwards, ...wrong];
};

const compareOne = (name: string, written: readonly Took[], observed: readonly ShownEvent[]): string[] => {
  const wrong = Array.from({ length: Math.max(written.length, observed.length) }, (_, index) => index).find(
    (index) => !shows(observed[index], written[index]),
  );
  if (wrong === undefined) return [];
  const [wrote, event] = [written[wrong], observed[wrong]];
  const asked = wrote === undefined ? 'nothing' : `${wrote.type} ${wrote.version ?? ''} (${wrote.content})`;
  return [
    `${name}: wrote ${asked}, the watch showed ${event === undefined ? 'nothing' : event.type} ${describe(event)}`,
  ];
};

const shows = (event: ShownEvent | undefined, wrote: Took | undefined): boolean =>
  event !== undefined &&
  wrote !== undefined &&
  wrote.type === event.type &&
  wrote.content === event.content &&
  (wrote.version === undefined || wrote.version === event.version);
