// One file over HTTP(S) as a source: found and pinned once, streamed with resume, read by ranges.
import { probe } from '#shared/transfer/source/http/probe.ts';
import { read, readInto } from '#shared/transfer/source/http/read.ts';
import { type HttpSourceOptions, createSession } from '#shared/transfer/source/http/session.ts';
import { stream } from '#shared/transfer/source/http/stream.ts';
import type { Source } from '#shared/transfer/source/source.ts';

export const createHttpSource = (options: HttpSourceOptions): Source => {
  const session = createSession(options);
  return {
    probe: () => probe(session),
    read: (offset, length) => read(session, offset, length),
    readInto: (offset, target) => readInto(session, offset, target),
    stream: () => stream(session),
    receivedBytes: () => session.receivedBytes,
    close: () => options.client.close(),
  };
};
