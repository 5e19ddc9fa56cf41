import { expect, it } from 'vitest';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { recordProgress } from '#shared/resources/report.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { createTestDriver } from '#test/support/driver.ts';

/** What the status says of the transfer once a look at the source has reported. */
const saidAfter = async (note: string | undefined): Promise<string | undefined> => {
  const { type } = hyperCloudImageKind;
  const driver = createTestDriver();
  const { metadata } = driver.kube.seed(
    type,
    aHyperCloudImage({ status: { phase: 'Pending', children: { job: 'inspect-uid' } } }),
  );
  const { namespace, name, uid = '' } = metadata;
  const owner = { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name, uid };
  await recordProgress(driver, owner, {
    run: 'inspect-uid-aaaaa',
    startedAt: '2026-01-02T03:04:00Z',
    sequence: 1,
    phase: 'Inspecting',
    percent: 0,
    receivedBytes: 0,
    note,
  });
  return (await driver.kube.get(type, { namespace, name }))?.status?.transfer?.note;
};

it.each([
  ['what keeps it from its end', 'cannot connect to the server'],
  ['nothing while all is well: that is no news', undefined],
])('a look at a source tells %s', async (_what, note) => {
  expect(await saidAfter(note)).toBe(note);
});
