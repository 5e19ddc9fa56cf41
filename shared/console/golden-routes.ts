// Golden images, and decisions about their versions: each is confirmed on a page that names what will happen.
import { html } from 'hono/html';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import {
  decide,
  deprecated,
  goodAgain,
  markedBad,
  pinned,
  promoted,
  undeprecated,
  unpinned,
  versionBefore,
} from '#shared/catalogue/decisions.ts';
import { listIfAny } from '#shared/catalogue/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Golden, goldenPage, policyPath } from '#shared/console/golden-page.ts';
import { policyPage } from '#shared/console/policy-page.ts';
import { streamChanges } from '#shared/console/live.ts';
import { type Page, field, hidden, notice } from '#shared/console/markup.ts';
import { namespaceOf, wordsOf } from '#shared/console/session.ts';
import {
  type ConsoleApp,
  type ConsoleContext,
  type ConsoleDeps,
  liveOf,
  readForm,
  show,
} from '#shared/console/visit.ts';
import { AppError, InvalidInput, NotFound } from '#shared/runtime/errors.ts';

type Fields = Readonly<Record<string, string>>;
type Decision = ReturnType<typeof promoted>;

interface Deed {
  readonly title: string;
  /** What happens to each channel and to disks. */
  readonly effects: readonly string[];
  readonly decision: Decision;
  /** Whether somebody has to say why. */
  readonly asksWhy: boolean;
  readonly isGrave?: boolean;
  /** Fields that were found out for this page. */
  readonly shown?: Fields;
}

const keep = 'Disks that exist keep their contents.';

const current = ({ status }: GoldenImagePolicy, channel: string): string =>
  status?.channels?.find(({ name }) => name === channel)?.version ?? 'nothing';

const need = (fields: Fields, name: string): string => {
  const value = fields[name];
  if (value === undefined || value === '')
    throw new InvalidInput(`the address names no ${name}: begin at the policy again`);
  return value;
};

const pinTo = (policy: GoldenImagePolicy, title: string, channel: string, fields: Fields, version: string): Deed => ({
  title,
  effects: [
    `Channel ${channel} goes from ${current(policy, channel)} to ${version} at once.`,
    `It stays there until it is unpinned. ${keep}`,
  ],
  decision: pinned(channel, version, fields['reason'] ?? ''),
  asksWhy: true,
});

const fallOf = (policy: GoldenImagePolicy, channel: string, version: string): string => {
  try {
    return `Channel ${channel} goes back from ${version} to ${versionBefore(policy, channel)} at once.`;
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    return `Channel ${channel} keeps ${version}, since it had no good version before; the policy reports NoGoodVersion.`;
  }
};

const endingOf = ({ channel, version }: Fields): Parameters<typeof deprecated>[0] & { readonly words: string } => {
  if (channel !== undefined && channel !== '') return { channel, words: `channel ${channel}` };
  return { version: need({ version: version ?? '' }, 'version'), words: version ?? '' };
};

const noNewDisks = 'no new disks';

const endOf = (fields: Fields): Deed => {
  const { words, ...ending } = endingOf(fields);
  const { reason = '', replacement = '', disks } = fields;
  const mark = {
    reason,
    ...(disks === noNewDisks ? { obsolete: true } : {}),
    ...(replacement === '' ? {} : { replacement }),
  };
  return {
    title: `Deprecate ${words}`,
    effects: [
      `Users who make a disk from ${words} are warned, or refused if no new disks are allowed.`,
      `Channels keep what they have. ${keep}`,
    ],
    decision: deprecated(ending, mark),
    asksWhy: true,
  };
};

/** By the last part of the address. */
const deeds: Readonly<Record<string, (policy: GoldenImagePolicy, fields: Fields) => Deed>> = {
  promote: (policy, fields) => {
    const [channel, version, skipSoak] = [
      need(fields, 'channel'),
      need(fields, 'version'),
      fields['soak'] === 'skip it',
    ];
    return {
      title: `Promote ${version} to ${channel}`,
      effects: [
        `${version} may enter channel ${channel}, which has ${current(policy, channel)}.`,
        `The other conditions of the channel still apply, unless the soak time is skipped. ${keep}`,
      ],
      decision: promoted({ channel, version, skipSoak, reason: fields['reason'] || undefined }),
      asksWhy: false,
    };
  },
  pin: (policy, fields) => {
    const [channel, version] = [need(fields, 'channel'), need(fields, 'version')];
    return pinTo(policy, `Pin ${channel} to ${version}`, channel, fields, version);
  },
  rollback: (policy, fields) => {
    const channel = need(fields, 'channel');
    // The version that was shown is the one that is meant.
    const version = fields['version'] || versionBefore(policy, channel);
    return { ...pinTo(policy, `Roll back ${channel}`, channel, fields, version), shown: { version } };
  },
  unpin: (policy, fields) => {
    const channel = need(fields, 'channel');
    const effects = [
      `Channel ${channel} moves on from ${current(policy, channel)} with the versions that may enter. ${keep}`,
    ];
    return { title: `Unpin ${channel}`, effects, decision: unpinned(channel), asksWhy: false };
  },
  'mark-bad': (policy, fields) => {
    const version = need(fields, 'version');
    const having = (policy.status?.channels ?? []).filter((channel) => channel.version === version);
    return {
      title: `Mark ${version} as bad`,
      effects: [
        ...having.map(({ name }) => fallOf(policy, name, version)),
        ...(having.length === 0 ? ['No channel has it now.'] : []),
        `The same bytes are not offered again, even if their source publishes them again. ${keep}`,
      ],
      decision: markedBad(version, fields['reason'] ?? ''),
      asksWhy: true,
      isGrave: true,
    };
  },
  deprecate: (_policy, fields) => endOf(fields),
  undeprecate: (_policy, fields) => {
    const { words, ...ending } = endingOf(fields);
    const effects = [`Disks are made from ${words} without a warning, unless it is deprecated by its age.`];
    return { title: `Stop deprecating ${words}`, effects, decision: undeprecated(ending), asksWhy: false };
  },
  good: (_policy, fields) => {
    const version = need(fields, 'version');
    return {
      title: `${version} is not bad`,
      effects: [`${version} may be offered again.`],
      decision: goodAgain(version),
      asksWhy: false,
    };
  },
};

const confirmPage = (policy: GoldenImagePolicy, what: string, fields: Fields, deed: Deed, trouble?: string): Page => {
  const { reason = '', soak: _soak, disks: _disks, replacement = '', ...others } = fields;
  const path = policyPath(policy);
  return {
    title: deed.title,
    section: '/golden',
    body: html`<h1>${deed.title}?</h1>
      ${trouble === undefined ? '' : notice('error', trouble)}
      <ul>
        ${deed.effects.map((effect) => html`<li>${effect}</li>`)}
      </ul>
      <form method="post" action="${path}/${what}">
        ${hidden({ ...others, ...deed.shown })}
        ${field({ name: 'reason', label: 'Why', value: reason, required: deed.asksWhy, hint: 'Recorded with the decision.' })}
        ${what === 'promote' ? field({ name: 'soak', label: 'Soak time', oneOf: ['wait for it', 'skip it'] }) : ''}
        ${
          what === 'deprecate'
            ? html`${field({ name: 'disks', label: 'New disks', oneOf: ['with a warning', noNewDisks] })}
              ${field({ name: 'replacement', label: 'Replacement', value: replacement, hint: 'DataSource of this namespace to use instead; may be empty.' })}`
            : ''
        }
        <div class="actions">
          <button class="${deed.isGrave === true ? 'danger' : 'main'}">${deed.title}</button>
          <a class="button" href="${path}">Cancel</a>
        </div>
      </form>`,
  };
};

const { type } = goldenImagePolicyKind;

const findPolicy = async (c: ConsoleContext): Promise<GoldenImagePolicy> => {
  const { namespace = '', name = '' } = c.req.param() as Fields;
  const policy = await c.get('visit').kube.get(type, { namespace, name });
  if (policy === undefined) throw new NotFound(`there is no GoldenImagePolicy ${name} in namespace ${namespace}`);
  return policy;
};

/** Throws NotFound, or InvalidInput where it cannot be done. */
const deedOf = (what: string, policy: GoldenImagePolicy, fields: Fields): Deed => {
  const make = Object.hasOwn(deeds, what) ? deeds[what] : undefined;
  if (make === undefined) throw new NotFound('there is no such page');
  return make(policy, fields);
};

const readGolden = async (kube: KubeClient, namespace: string | undefined): Promise<Golden> => {
  const [policies, crons, dataSources] = await Promise.all([
    listIfAny(kube, type, namespace),
    listIfAny(kube, dataImportCronKind.type, namespace),
    listIfAny(kube, dataSourceKind.type, namespace),
  ]);
  return { policies, crons, dataSources };
};

const isEmpty = ({ policies, crons, dataSources }: Golden): boolean =>
  policies.length + crons.length + dataSources.length === 0;

const apply = async (c: ConsoleContext, what: string) => {
  const policy = await findPolicy(c);
  const fields = await readForm(c);
  const deed = deedOf(what, policy, fields);
  const again = (trouble: string) => show(c, confirmPage(policy, what, fields, deed, trouble), 400);
  if (deed.asksWhy && (fields['reason'] ?? '') === '')
    return again('A reason is required: it is recorded with the decision.');
  try {
    await decide(c.get('visit').kube, policy, deed.decision);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return again(wordsOf(error));
  }
  return c.redirect(policyPath(policy), 303);
};

export const addGolden = (app: ConsoleApp, deps: ConsoleDeps): void => {
  app.get('/golden', async (c) => {
    const { kube, session, now } = c.get('visit');
    const { namespace = '' } = c.req.query();
    const golden = await readGolden(kube, namespace === '' ? undefined : namespace);
    const own = namespaceOf(session);
    if (!isEmpty(golden) || namespace !== '' || own === undefined) return show(c, goldenPage(golden, namespace, now));
    return show(c, goldenPage(await readGolden(kube, own), own, now));
  });
  app.get('/live/golden', (c) => {
    const { namespace = '' } = c.req.query();
    const where = { namespace: namespace === '' ? undefined : namespace, since: undefined };
    return streamChanges(
      c,
      liveOf(c, deps),
      [type, dataImportCronKind.type].map((one) => ({ ...where, type: one as never })),
    );
  });
  app.get('/golden/:namespace/:name', async (c) => show(c, policyPage(await findPolicy(c), c.get('visit').now)));
  app.get('/golden/:namespace/:name/:what', async (c) => {
    const [policy, fields, what] = [await findPolicy(c), c.req.query(), c.req.param('what')];
    return show(c, confirmPage(policy, what, fields, deedOf(what, policy, fields)));
  });
  app.post('/golden/:namespace/:name/:what', (c) => apply(c, c.req.param('what')));
};
