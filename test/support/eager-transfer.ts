// A transfer in a separate process that tests kill: its spec is the first argument.
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { eagerSaving } from '#test/support/eager-saving.ts';

await runTransfer(TransferSpec.parse(JSON.parse(process.argv[2] ?? '')), {
  run: 'run-1',
  signal: new AbortController().signal,
  send: () => Promise.resolve(),
  log: () => {},
  saving: eagerSaving,
});
