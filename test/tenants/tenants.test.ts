// A user with `edit` in one namespace gets nothing of another one, and controls nothing that runs with the permissions of Bullion: one row for each
// thing they can write.
import { beforeAll, describe, expect, it } from 'vitest';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import { annotations, finalizers, labels } from '#shared/api/names.ts';
import { fieldRules, isReference, ruleOf, texts } from '#test/tenants/fields.ts';
import { markRules } from '#test/tenants/marks.ts';
import { type ObjectRow, outcomes, secretWord, victim } from '#test/tenants/row.ts';
import { objectRows } from '#test/tenants/rows.ts';
import { bare, createWorld, drive, isScoped, lootIn, submit, theirsIn, typeOf } from '#test/tenants/world.ts';
import { eventTypes } from '#events/catalogue.ts';
import { createApp as createInitialize } from '#functions/initialize/app.ts';
import { createApp as createSidecarSync } from '#functions/sidecar-sync/app.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import { type Caller, permit } from '#shared/exchange/access/caller.ts';
import { parseTarget } from '#shared/exchange/target-name.ts';
import { type Draft, withAccess } from '#test/support/admission.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { postEvent, sendChange, sendEvent } from '#test/support/send-event.ts';
import { fieldOf } from '#test/support/texts.ts';
import { seedWorker } from '#test/support/transfer-secret.ts';
import { type EventRow, eventRows, forgedReports, hintsAlone, tokenRows } from '#test/tenants/events.ts';

const marksOf = ({ metadata }: Draft): object => ({
  labels: metadata['labels'] ?? {},
  annotations: metadata['annotations'] ?? {},
});

/** Whether the API server calls the webhook that protects it. */
const isHeard = ({ object, holds }: ObjectRow): boolean => {
  if (holds === 'stripped') return isScoped('mutate', object);
  return holds === 'own' || holds === 'inert' || isScoped('validate', object);
};

type Answer = Awaited<ReturnType<typeof submit>>['answer'];

/** The field that was refused for the sake of the reference: itself, or one that contains it. A fault of the schema hides the rule. */
const refusedField = ({ reference }: ObjectRow, { status }: Answer): string | undefined =>
  status?.details?.causes?.find(({ field, message }) => {
    const place = field.replace(/^metadata\./, '').replaceAll(/\[\d+\]/g, '[]');
    const isOfIt = place === reference || reference.startsWith(`${place}.`);
    return isOfIt && place !== 'spec' && !message.startsWith('Invalid input');
  })?.field;

/** The result: at admission, and if it is accepted, after every function has reconciled it. */
const outcomeOf = async (row: ObjectRow): Promise<readonly string[]> => {
  const { object, holds } = row;
  const world = createWorld();
  const sent = await submit(world, row);
  expect(JSON.stringify(sent.answer)).not.toContain(secretWord);
  if (!sent.answer.allowed) {
    if (sent.answer.status?.code === 403 && holds === 'asked') return ['asked'];
    const { message, details } = sent.answer.status ?? {};
    const isOfIt = refusedField(row, sent.answer) !== undefined;
    return [isOfIt ? 'refused' : `refused for another reason: ${JSON.stringify(details?.causes ?? message)}`];
  }
  const made = world.kube.seed(typeOf(object), sent.object as never);
  await drive(world, made);
  expect(theirsIn(world)).toEqual(untouched);
  expect(lootIn(world, made)).toEqual([]);
  const wasStripped = Object.entries(marksOf(object)).some(([map, keys]) =>
    Object.keys(keys as object).some((key) => !(key in (marksOf(sent.object) as Record<string, object>)[map]!)),
  );
  return wasStripped ? ['stripped'] : ['own', 'inert'];
};

/** The victim's objects without an attack. */
let untouched: readonly unknown[];
beforeAll(async () => {
  const world = createWorld();
  await drive(world);
  untouched = theirsIn(world);
});

describe('an object that a tenant writes', () => {
  it.each(
    objectRows.map(
      (row) =>
        [
          `${row.kind} ${row.reference}: to ${row.attack}${row.by === undefined ? '' : ` by ${row.by}`}: ${row.holds}`,
          row,
        ] as const,
    ),
  )(
    '%s',
    async (_title, row) => {
      expect(await outcomeOf(row)).toContain(row.holds);
      expect(isHeard(row)).toBe(true);
      const { right } = row;
      const { answer } = await submit(createWorld(right === undefined ? [] : [right]), row);
      expect(right === undefined ? undefined : answer.status).toBeUndefined();
    },
    20_000,
  );
});

describe('an object without the attack', () => {
  const refused = objectRows.filter(({ holds, without }) => holds === 'refused' && without !== undefined);

  it.each(refused.map((row) => [`${row.kind} ${row.reference}`, row] as const))('%s: is accepted', async (_, row) => {
    const attacked = await submit(createWorld(), row);
    const object = row.without!(refusedField(row, attacked.answer) ?? '');
    const { answer } = await submit(createWorld(), { object });
    expect(answer.status?.details?.causes ?? []).toEqual([]);
    expect(answer.allowed).toBe(true);
  });
});

describe('an event that anybody posts to a function', () => {
  /** The state after the function has processed it. */
  const after = async ({ type, to, given }: EventRow, data: (object: KubeObject) => unknown) => {
    const world = createWorld();
    const object = world.kube.seed(typeOf(given), given);
    await sendEvent(
      to === 'initialize' ? createInitialize(world.deps) : createSidecarSync(world.deps),
      type,
      data(object),
    );
    expect(lootIn(world, object)).toEqual([]);
    return world.kube.all().map(bare);
  };

  it.each(eventRows.map((row) => [`${row.type} to ${row.to}: to ${row.attack}`, row] as const))(
    '%s has the same effect as the real event',
    async (_title, row) => {
      expect(await after(row, row.forge)).toEqual(await after(row, row.data));
    },
  );

  it.each(Object.entries(forgedReports))('%s: changes nothing', async (_title, forge) => {
    const world = createWorld();
    const image = world.kube.seed(
      hyperCloudImageKind.type,
      aHyperCloudImage({ metadata: { namespace: victim, name: 'new' } }),
    );
    await sendChange(createInitialize(world.deps), 'add', image);
    const [job] = world.kube.all(jobs).filter(({ metadata }) => metadata.namespace === victim);
    const run = `${job!.metadata.name}-aaaaa`;
    seedWorker(world.kube, run);
    const before = theirsIn(world);
    const answer = await postEvent(createSidecarSync(world.deps), '/', forge(world, refOf(image), run));
    expect([answer.status, theirsIn(world)]).toEqual([204, before]);
  });

  it('is one of the table, or only a reference', () => {
    const known = [...eventRows.map(({ type }) => type), eventTypes.transferProgressed, ...Object.keys(hintsAlone)];
    expect(new Set(known)).toEqual(new Set(Object.values(eventTypes)));
  });
});

describe('a token', () => {
  it.each(tokenRows.map((row) => [`${row.token}: to ${row.attack}: ${row.holds}`, row] as const))(
    '%s',
    async (_title, { claims, deed, target: text, holds }) => {
      const caller: Caller =
        claims === undefined
          ? { by: 'cluster', requester: { username: 'jane' } }
          : { by: 'token', claims: { iss: 'bullion', sub: 'jane', iat: 0, exp: 300, ...claims } };
      const target = parseTarget(text)!;
      await expect(permit(createWorld().deps.kube, caller, deed, target)).rejects.toMatchObject({ status: 403 });
      if (holds !== 'asked') return;
      const all = withAccess(createWorld().kube, () => true);
      await expect(permit(all, caller, deed, target)).resolves.toBeUndefined();
    },
  );
});

describe('the table', () => {
  it('has a rule for every reference: add one to fieldRules, or the text to test/support/texts.ts', () => {
    const references = texts.filter(isReference);
    expect(references.filter((text) => ruleOf(text) === undefined).map(fieldOf)).toEqual([]);
    expect(fieldRules.filter((rule) => !references.some((text) => ruleOf(text) === rule))).toEqual([]);
    expect(
      references.filter((text) => !objectRows.some(({ reference }) => reference === text.path)).map(fieldOf),
    ).toEqual([]);
    expect(objectRows.filter(({ reference }) => reference.startsWith('spec.')).length).toBeGreaterThan(100);
  });

  it('lists every label, annotation and finalizer that the code uses, and no other', () => {
    const known = {
      labels: [labels, cdiLabels, harvesterLabels],
      annotations: [annotations, cdiAnnotations, harvesterAnnotations],
      finalizers: [finalizers],
    };
    for (const [map, lists] of Object.entries(known)) {
      const keys = lists.flatMap((list) => Object.values(list) as string[]);
      expect(new Set(markRules.filter((rule) => rule.map === map).map(({ key }) => key))).toEqual(new Set(keys));
    }
  });

  it('describes every protection with one of few words', () => {
    expect(new Set(objectRows.map(({ holds }) => holds))).toEqual(new Set(Object.keys(outcomes)));
  });
});
