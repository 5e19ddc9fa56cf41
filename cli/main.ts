#!/usr/bin/env node
// The command line `bullion`.
import { runCommandLine } from '#cli/run.ts';

const interrupted = new AbortController();
// A second Ctrl-C ends the process at once.
process.once('SIGINT', () => interrupted.abort());

process.exitCode = await runCommandLine(process.argv.slice(2), {
  terminal: {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isLive: process.stderr.isTTY === true,
    now: () => new Date(),
  },
  signal: interrupted.signal,
});
