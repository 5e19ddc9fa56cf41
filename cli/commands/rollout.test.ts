// What the commands about versions write into a policy.
import { beforeEach, describe, expect, it } from 'vitest';
import { type ClusterCommand, exitCodes } from '#cli/command.ts';
import { whyCommand } from '#cli/commands/why.ts';
import { eventsCommand } from '#cli/commands/events.ts';
import { rolloutCommands } from '#cli/commands/rollout.ts';
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { deprecationOfImage } from '#shared/golden/rollout/deprecation.ts';
import { Conflict } from '#shared/runtime/errors.ts';
import { aHarvesterImage } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const { type } = goldenImagePolicyKind;
const key = { namespace: 'golden', name: 'fedora' };
let kube: MemoryKube;

const version = (name: string, state = 'Verified') => ({
  name,
  cron: 'fedora',
  arrived: '2026-01-01T00:00:00Z',
  state: state as 'Verified',
  held: [{ channel: 'stable', seconds: 1 }],
});

const aPolicy = (name: string, spec: Partial<GoldenImagePolicySpec> = {}): GoldenImagePolicy => ({
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: { ...key, name },
  spec: {
    dataImportCrons: { names: [name] },
    channels: [
      { name: 'candidate', dataSource: `${name}-candidate` },
      { name: 'stable', dataSource: name, after: { channel: 'candidate', approval: 'manual' } },
    ],
    ...spec,
  },
  status: {
    phase: 'Waiting',
    channels: [{ name: 'stable', dataSource: name, version: `${name}-3`, reason: 'Soaking', message: 'for 1h of 24h' }],
    versions: [version(`${name}-1`), version(`${name}-2`, 'Failed'), version(`${name}-3`)],
  },
});

beforeEach(() => {
  kube = createMemoryKube();
  kube.seed(type, aPolicy('fedora'));
});

const specNow = async () => (await kube.get(type, key))?.spec;

const call = async (name: string, positionals: readonly string[], values: Record<string, string | boolean> = {}) => {
  const command = [eventsCommand, ...rolloutCommands, whyCommand].find((one) => one.name === name) as ClusterCommand;
  const now = new Date('2026-01-02T00:00:00Z');
  const { code, out } = await runCommand(command, { kube, namespace: 'golden', positionals, values, now });
  expect(code).toBe(exitCodes.done);
  return out;
};

const reason = 'kernel panic';

describe('events', () => {
  beforeEach(() =>
    kube.edit(type, key, ({ status }) => {
      status!.history = [
        { time: '2026-01-01T00:00:00Z', channel: 'stable', to: 'fedora-1', reason: 'Adopted', message: 'it was there' },
        {
          time: '2026-01-01T10:00:00Z',
          channel: 'stable',
          from: 'fedora-1',
          to: 'fedora-3',
          reason: 'Promoted',
          message: 'soaked',
        },
        { time: '2026-01-01T23:30:00Z', to: 'fedora-3', reason: 'MarkedBad', by: 'jane', message: reason },
      ];
    }),
  );

  it('are given again as they were sent, one a line', async () => {
    const lines = (await call('events', ['fedora'], { output: 'json' })).trim().split('\n');
    const { uid } = (await kube.get(type, key))!.metadata;
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        specversion: '1.0',
        type: 'dev.bullion.version.promoted',
        id: `${uid}.promoted/stable/fedora-3/2026-01-01T10:00:00Z`,
        name: 'fedora',
        data: { channel: 'stable', version: 'fedora-3' },
      },
      {
        type: 'dev.bullion.version.markedbad',
        data: { version: 'fedora-3', message: expect.stringContaining('by jane') },
      },
    ]);
  });

  it.each(['1h', '2026-01-01T20:00:00Z'])('since %s', async (since) => {
    const out = await call('events', ['fedora'], { since });
    expect(out).toMatch(/markedbad/);
    expect(out).not.toMatch(/promoted/);
  });

  it('say what is wrong', async () => {
    await expect(call('events', ['fedora'], { since: 'monday' })).rejects.toThrow(/--since monday is neither/);
    await expect(call('events', ['other'])).rejects.toThrow(/no GoldenImagePolicy other in namespace golden/);
  });
});

describe('bullion', () => {
  it.each(['stable', 'fedora', 'fedora/stable'])('promote finds a channel as %s', async (wanted) => {
    expect(await call('promote', [wanted, 'fedora-3'])).toContain('fedora-3 may enter channel stable');
    expect((await specNow())?.approvals).toEqual([{ channel: 'stable', version: 'fedora-3' }]);
    await call('promote', [wanted, 'fedora-3'], { 'skip-soak': true, reason });
    expect((await specNow())?.approvals).toEqual([{ channel: 'stable', version: 'fedora-3', skipSoak: true, reason }]);
  });

  it('says which names there are, and which are several', async () => {
    await expect(call('promote', ['edge', 'fedora-3'])).rejects.toThrow(/fedora\/candidate, fedora\/stable/);
    kube.seed(type, aPolicy('debian'));
    await expect(call('promote', ['stable', 'x'])).rejects.toThrow(
      /write fedora\/stable or debian\/stable|write debian\/stable or fedora\/stable/,
    );
  });

  it('pin and unpin, with a reason', async () => {
    await expect(call('pin', ['stable', 'fedora-1'])).rejects.toThrow(/--reason/);
    await call('pin', ['stable', 'fedora-1'], { reason });
    expect((await specNow())?.pins).toEqual({ stable: { version: 'fedora-1', reason } });
    expect(await call('unpin', ['stable'])).toContain('moves on');
    expect((await specNow())?.pins).toEqual({});
    expect(await call('unpin', ['stable'])).toContain('is not pinned');
  });

  it('rollback goes to the good version before, or to the one that is named', async () => {
    await call('rollback', ['stable'], { reason });
    expect((await specNow())?.pins).toEqual({ stable: { version: 'fedora-1', reason } });
    await call('rollback', ['stable'], { reason, to: 'fedora-2' });
    expect((await specNow())?.pins).toMatchObject({ stable: { version: 'fedora-2' } });
    await expect(call('rollback', ['candidate'], { reason })).rejects.toThrow(
      /channel candidate of fedora has no version: name one of fedora-1, fedora-3 \(--to\)/,
    );
  });

  it.each<[versions: readonly string[], says: RegExp]>([
    [['fedora-3'], /no good version before fedora-3, and there is no other good version: wait for the next one/],
    [['fedora-3', 'fedora-4'], /no good version before fedora-3: name one of fedora-4 \(--to\)/],
  ])('rollback does not name the version in use where there are %j', async (names, says) => {
    kube.edit(type, key, ({ status }) => {
      status!.versions = names.map((name) => version(name));
    });
    await expect(call('rollback', ['stable'], { reason })).rejects.toThrow(says);
  });

  it('promote says what the version waits for', async () => {
    kube.edit(type, key, ({ spec }) => void Object.assign(spec.channels[1]!.after!, { soak: '24h' }));
    expect(await call('promote', ['stable', 'fedora-3'])).toMatch(
      /may enter channel stable once channel candidate has had it for 24h$/m,
    );
    expect(await call('promote', ['stable', 'fedora-3'], { 'skip-soak': true })).toMatch(/channel stable at once$/m);
  });

  it('mark-bad, and its undoing', async () => {
    await call('mark-bad', ['fedora-3'], { reason });
    expect((await specNow())?.bad).toEqual([{ version: 'fedora-3', reason }]);
    await call('mark-bad', ['fedora-3'], { undo: true });
    expect((await specNow())?.bad).toEqual([]);
    await expect(call('mark-bad', ['fedora-9'], { reason })).rejects.toThrow(/has a version fedora-9/);
  });

  it.each<[wanted: string, ending: object]>([
    ['fedora-3', { version: 'fedora-3' }],
    ['stable', { channel: 'stable' }],
    ['fedora/candidate', { channel: 'candidate' }],
  ])('deprecate %s, make it obsolete, and undo that', async (wanted, ending) => {
    const others = [{ version: 'fedora-1', reason: 'other' }];
    kube.edit(type, key, ({ spec }) => void Object.assign(spec, { deprecated: others }));
    await expect(call('deprecate', [wanted])).rejects.toThrow(/--reason/);
    expect(await call('deprecate', [wanted], { reason })).toContain('with a warning');
    expect((await specNow())?.deprecated).toEqual([...others, { ...ending, reason }]);
    expect(await call('deprecate', [wanted], { reason, obsolete: true, replacement: 'next' })).toContain(
      'no new disks',
    );
    expect((await specNow())?.deprecated).toEqual([
      ...others,
      { ...ending, reason, obsolete: true, replacement: 'next' },
    ]);
    await call('deprecate', [wanted], { undo: true });
    expect((await specNow())?.deprecated).toEqual(others);
  });

  it('deprecate an image that no policy has, make it obsolete, and undo that', async () => {
    kube.seed(harvesterImageKind.type, aHarvesterImage({ metadata: { ...key, name: 'jammy' } }));
    const markNow = async () => deprecationOfImage(await kube.get(harvesterImageKind.type, { ...key, name: 'jammy' }));
    await expect(call('deprecate', ['harvester/jammy'])).rejects.toThrow(/--reason/);
    await expect(call('deprecate', ['jammy'], { reason })).rejects.toThrow('jammy is an image: write harvester/jammy');
    expect(await call('deprecate', ['harvester/jammy'], { reason })).toContain('with a warning');
    const mark = { state: 'Deprecated', since: '2026-01-02T00:00:00Z', message: reason };
    expect(await markNow()).toEqual(mark);
    await call('deprecate', ['harvester/jammy'], { reason, obsolete: true, replacement: 'noble' });
    expect(await markNow()).toEqual({ ...mark, state: 'Obsolete', replacement: 'noble' });
    await call('deprecate', ['harvester/jammy'], { undo: true });
    expect(await markNow()).toBe(undefined);
  });

  it('deprecate says what there is where nothing has the name', async () => {
    await expect(call('deprecate', ['fedora-9'], { reason })).rejects.toThrow(/fedora\/candidate, fedora\/stable/);
    await expect(call('deprecate', ['fedora-9'], { reason, policy: 'debian' })).rejects.toThrow(
      /no GoldenImagePolicy debian/,
    );
  });

  it('keeps what somebody else decided meanwhile', async () => {
    kube.failNext({ verb: 'patch' }, { error: new Conflict('changed'), when: 'before' });
    await call('mark-bad', ['fedora-1'], { reason });
    expect((await specNow())?.bad).toEqual([{ version: 'fedora-1', reason }]);
  });

  it('why says where each channel stands', async () => {
    const text = await call('why', ['gip/fedora']);
    expect(text).toMatch(/Channel stable\s+fedora-3, Soaking: for 1h of 24h/);
    kube.edit(type, key, ({ status }) => {
      status!.channels![0]!.deprecation = { state: 'Obsolete', message: 'use Fedora 42', replacement: 'fedora-42' };
      status!.versions![0]!.deprecation = { state: 'Deprecated', message: reason, by: 'jane' };
    });
    const ended = (await call('why', ['gip/fedora'])).replaceAll(/\s+/g, ' ');
    expect(ended).toContain('the channel is obsolete: use Fedora 42; use DataSource fedora-42 instead');
    expect(ended).toContain('Version fedora-1 deprecated, by jane: kernel panic');
  });
});
