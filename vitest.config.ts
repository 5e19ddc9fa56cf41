import { join } from 'node:path';
import { env } from 'node:process';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';

/** Where files take longest: not told by their size, which is all that is known of them at the first run. */
const long = /^test\/(flows|faults)\/|^local-cluster\/(envtest|conformance)\/|^infra\/(images|generate)\//;

/** Long files first: one that begins last would have the machine for itself. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      long.test(moduleId.slice(import.meta.dirname.length + 1));
    const { true: first = [], false: then = [] } = Object.groupBy(await super.sort(files), (file) =>
      isLong(file) ? 'true' : 'false',
    );
    return [...first, ...then];
  }
}

/** Of tests and of every process that they start: compiling our code is a fifth of what the start of a cluster takes. Workers read it when they start. */
env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/code');

/**
 * Of workers: buffers in huge pages. A process copies its page tables when it starts another: 120 ms with 2 GB in small pages, 4 ms like this, and tests
 * start some thousand. Nothing where the kernel or the C library does not know it.
 */
env['GLIBC_TUNABLES'] ??= 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432';

/** Unit tests live beside the code; flows and conformance run against a local cluster and take longer. */
export default defineConfig({
  test: {
    include: ['{functions,events,shared,infra,local-cluster,cli,test}/**/*.test.ts'],
    // `npm run test:cluster` starts what these run on.
    exclude: ['**/node_modules/**', ...(env['BULLION_NODE'] === undefined ? ['test/cluster/**'] : [])],
    globalSetup: 'test/support/setup.ts',
    // `npm run test:times`: what each file takes.
    setupFiles: env['BULLION_TIMES'] === undefined ? [] : ['test/times/record.ts'],
    pool: 'forks',
    // Threads that collect garbage beside four workers on two processors cost a tenth more than they save.
    // Buffers count towards the size at which the heap is collected, instead of a collection for each 64 MiB of them: a third of the processor time of
    // flows that move disks. With a limit, since that would let four workers take half of a machine's memory.
    // Node reads TypeScript itself, as the product is run: tests need no transformation, and no module is mocked.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ['--external-memory-accounted-in-global-limit', '--max-old-space-size=1536', '--single-threaded-gc'],
    // Files share a process and what it has loaded, which is most of what a short one takes and a quarter of what a flow takes: tests change nothing
    // that is the process's own (environment, working directory, timers, globals), and what they need is passed in.
    isolate: false,
    // Flows wait for processes that they started: of 2,400 s on the clock they spend 980 s of processors, in files that run beside each other.
    maxWorkers: 4,
    sequence: { sequencer: LongFirst },
    env: {
      // Transfer Jobs run what is shipped, which starts in a third of the time; `test/support/setup.ts` makes it.
      // From the root of the repository, where Jobs are started: a command has no place for a path with spaces.
      BULLION_TRANSFER_JOB: 'node_modules/.cache/bundles/transfer-job.mjs',
      // A boot sector starts in a fifteenth of the processor time that nested KVM takes for it, and its probe as much again.
      BULLION_ACCELERATOR: 'emulation',
    },
    // Long: a machine that is busy with other things makes everything late. Who waits for a state says how long; who does not, waits as long as this.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
