// Runs a program to its end. Used by the demo.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Rejects when the program is missing or ends with anything but 0. */
export const run = promisify(execFile);
