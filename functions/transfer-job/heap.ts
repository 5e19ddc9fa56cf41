// Keeps the heap small. Imported by index.ts before anything else, since a young generation that has grown does not shrink.
import { setFlagsFromString } from 'node:v8';

// Nearly all that is allocated are buffers that live for a moment. In MiB; saves 70 MiB of 320 and costs some 5 % of the processor time.
setFlagsFromString('--max-semi-space-size=1');
