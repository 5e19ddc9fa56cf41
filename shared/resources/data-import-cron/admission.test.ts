// The admission rules of crons.
import { describe, expect, it } from 'vitest';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import { createValidator } from '#shared/resources/admission.ts';
import { released, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron } = world;

describe('admission', () => {
  const review = (operation: 'CREATE' | 'UPDATE', object: DataImportCron, oldObject?: DataImportCron) =>
    createValidator(world.kube)({
      uid: '1',
      operation,
      kind: { group: 'cdi.kubevirt.io', version: 'v1beta1', kind: 'DataImportCron' },
      resource: { group: 'cdi.kubevirt.io', version: 'v1beta1', resource: 'dataimportcrons' },
      userInfo: { username: 'somebody' },
      object,
      oldObject,
    } as never);

  it('rejects what could never be polled, with every error at once', async () => {
    const cron = aCron({ schedule: 'daily', template: { spec: { source: { blank: {} } } } });
    expect(await review('CREATE', cron)).toMatchObject({
      kind: 'refused',
      faults: [{ field: 'spec.template.spec.source' }, { field: 'spec.schedule' }],
    });
  });

  it('rejects a changed spec, including fields of the template that only data volumes have', async () => {
    const before = aCron();
    expect(await review('CREATE', before)).toMatchObject({ kind: 'allowed' });
    const template = { spec: { ...released.template?.spec, preallocation: true } };
    const after = { ...before, spec: { ...before.spec, template } };
    expect(await review('UPDATE', after, before)).toMatchObject({ kind: 'refused', faults: [{ field: 'spec' }] });
  });
});
