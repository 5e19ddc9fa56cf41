// What is logged of an Event that could not be recorded: what somebody can act on.
import { describe, expect, it } from 'vitest';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { countNote, recordNote } from '#shared/resources/write.ts';
import { Conflict, Denied, Unavailable } from '#shared/runtime/errors.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { anImage } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const note = { type: 'Normal', reason: 'Ready', message: 'it is ready', occurrence: 'once' } as const;

describe.each([
  ['one', recordNote],
  ['one that is counted', countNote],
] as const)('an Event, %s', (_which, record) => {
  it.each([
    ['was recorded before', new Conflict('it exists'), 0],
    [
      'is of a namespace that is being deleted',
      new Denied('x is forbidden: unable to create new content in namespace a because it is being terminated'),
      0,
    ],
    ['may not be created', new Denied('x is forbidden: no right to create events'), 1],
    ['meets an API server that is down', new Unavailable('no route to host'), 1],
  ])('that %s', async (_what, error, lines) => {
    const kube = createMemoryKube();
    kube.failNext({ verb: 'create', resource: kubeEvents.plural }, { error, when: 'before' });
    const logged: string[] = [];
    const log = createLogger({ write: (line) => void logged.push(line) });
    await record({ kube, now: () => 0, log }, anImage().ref, note);
    expect(logged).toHaveLength(lines);
  });
});
