import { describe, expect, it } from 'vitest';
import { type Caller, type Deed, permit } from './caller.ts';
import { parseTarget, type TargetName } from '#shared/exchange/target-name.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const target = (text: string): TargetName => {
  const parsed = parseTarget(text);
  if (parsed === undefined) throw new Error(`${text} is no target`);
  return parsed;
};

const holder = (verb: Deed): Caller => ({
  by: 'token',
  claims: { iss: 'bullion', sub: 'jane', verb, target: 'datavolumes/team/disk', iat: 0, exp: 300 },
});

describe('a token of Bullion', () => {
  it.each<[Deed, string, Deed]>([
    ['download', 'datavolumes/team/disk', 'upload'],
    ['upload', 'datavolumes/team/disk', 'download'],
    ['upload', 'datavolumes/team/other', 'upload'],
    ['upload', 'datavolumes/other/disk', 'upload'],
    ['upload', 'persistentvolumeclaims/team/disk', 'upload'],
    ['download', 'virtualmachineimages/team/disk', 'download'],
  ])('does not allow to %s %s when it was issued to %s another', async (deed, text, issued) => {
    const asked = permit(createMemoryKube(), holder(issued), deed, target(text));
    await expect(asked).rejects.toMatchObject({
      status: 403,
      message: `this token is for ${issued} of datavolumes/team/disk, not for ${deed} of ${text}`,
    });
  });

  it.each<Deed>(['upload', 'download'])('allows to %s what it was issued for', async (deed) => {
    await expect(
      permit(createMemoryKube(), holder(deed), deed, target('datavolumes/team/disk')),
    ).resolves.toBeUndefined();
  });
});
