// All benchmarks, one line each; what a line names is loaded only when it runs. Read by main.ts.

interface Benchmark {
  readonly name: string;
  readonly about: string;
  /** `run` takes the rest of the command line and prints its results. */
  readonly load: () => Promise<{ readonly run: (args: readonly string[]) => Promise<void> }>;
}

export const benchmarks: readonly Benchmark[] = [
  {
    name: 'api-server',
    about: 'requests, pages, watches and memory of the embedded API server, beside a real one where there is one',
    load: () => import('#test/bench/api-server/run.ts'),
  },
  {
    name: 'admission',
    about: 'validate and mutate beside a bare handler that parses and echoes the same review',
    load: () => import('#test/bench/admission/run.ts'),
  },
  {
    name: 'golden',
    about: 'a minute in which every cron of golden images is due, and one in which none is: requests and API calls',
    load: () => import('#test/bench/golden/run.ts'),
  },
  {
    name: 'scale',
    about:
      'a tick, a scrape and an admission beside a tenth of the objects and all: requests, bytes, processor time, memory',
    load: () => import('#test/bench/scale/run.ts'),
  },
  {
    name: 'cold-start',
    about: 'each bundled function from nothing to ready, beside bare Node; memory and size of its bundle',
    load: () => import('#test/bench/cold-start/run.ts'),
  },
  {
    name: 'burst',
    about: 'events of a hundred new images at one process, by how many it handles at a time: seconds, memory',
    load: () => import('#test/bench/burst/run.ts'),
  },
  {
    name: 'backup',
    about:
      'bytes that the first backup of an image sends, a second one, and one of a slightly changed image; one object beside chunks',
    load: () => import('#test/bench/backup/run.ts'),
  },
  {
    name: 'transfer',
    about: 'images from nginx onto a disk, beside curl and qemu-img, nbdkit, and the limits of wire and decoder',
    load: () => import('#test/bench/transfer/run.ts'),
  },
];
