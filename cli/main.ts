#!/usr/bin/env node
// The command line `bullion`.
import { runCommandLine } from '#cli/run.ts';

const interrupted = new AbortController();
// A second Ctrl-C ends the process at once.
process.once('SIGINT', () => interrupted.abort());

// The reader has closed the pipe (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exitCode = await runCommandLine(process.argv.slice(2), {
  terminal: {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isLive: process.stderr.isTTY === true,
    hasColors: process.stderr.isTTY && process.stderr.hasColors(),
    showsColors: process.stdout.isTTY && process.stdout.hasColors(),
    width: () => process.stderr.columns,
    now: () => new Date(),
    columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  },
  signal: interrupted.signal,
});
