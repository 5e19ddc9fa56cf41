// Keeps the heap small. Imported by index.ts, and that of infra/single, before any other module, because a young generation that has grown does not shrink.
import { setFlagsFromString } from 'node:v8';

// Nearly all allocations are short-lived buffers. In MiB; saves 70 MiB of 320 and costs about 5 % of the CPU time.
setFlagsFromString('--max-semi-space-size=1');
