// Import by a form: what would be created is shown, and tried at the cluster, before it is applied.
import { html } from 'hono/html';
import { imageGroups } from '#shared/catalogue/image.ts';
import { type Planned, plannedFrom } from '#shared/catalogue/import.ts';
import { type Markup, type Page, field, trouble, yamlOf } from '#shared/console/markup.ts';
import { type AnyType, objectPath } from '#shared/console/query.ts';
import { namespaceOf } from '#shared/console/session.ts';
import { type ConsoleApp, type ConsoleContext, readForm, show } from '#shared/console/visit.ts';
import { AppError, InvalidInput } from '#shared/runtime/errors.ts';

type Fields = Readonly<Record<string, string>>;

interface Tried {
  readonly planned?: Planned;
  /** What the cluster, or the form, has against it. */
  readonly error?: AppError;
}

/** Throws InvalidInput. */
const planOf = (fields: Fields): Planned => {
  const { name = '', namespace = '', place = '' } = fields;
  if (name === '' || namespace === '' || place === '') throw new InvalidInput('fill in source, name and namespace');
  const given = (key: string): string | undefined => fields[key] || undefined;
  return plannedFrom({
    name,
    namespace,
    place,
    group: imageGroups.find((group) => group === fields['group']),
    storageClass: given('storageClass'),
    size: given('size'),
    checksum: given('checksum'),
  });
};

const formOf = (fields: Fields, isTried: boolean): Markup =>
  html`<form method="post" action="/import">
    ${field({ name: 'place', label: 'Source', value: fields['place'], required: true, hint: 'https://…, s3://<bucket>/<key>, or docker://<host>/<repository> to follow a registry' })}
    ${field({ name: 'name', label: 'Name', value: fields['name'], required: true })}
    ${field({ name: 'namespace', label: 'Namespace', value: fields['namespace'], required: true })}
    ${field({ name: 'group', label: 'Kind of image', value: fields['group'], oneOf: imageGroups, hint: 'For a registry, a DataImportCron is created.' })}
    ${field({ name: 'storageClass', label: 'Storage class', value: fields['storageClass'], hint: 'Default: the default class.' })}
    ${field({ name: 'size', label: 'Size', value: fields['size'], hint: 'Such as 20Gi. Default: that of the disk.' })}
    ${field({ name: 'checksum', label: 'Checksum', value: fields['checksum'], hint: 'sha256:… or sha512:… of the file as published.' })}
    <div class="actions">
      <button class="${isTried ? '' : 'main'}" name="step" value="check">Check</button>
      ${isTried ? html`<button class="main" name="step" value="apply">Import</button>` : ''}
    </div>
  </form>`;

const planned = ({ planned: plan, error }: Tried): Markup | '' => {
  if (plan === undefined) return '';
  const verdict =
    error === undefined
      ? html`<p class="notice" role="status">The cluster would accept this. Nothing was created yet.</p>`
      : '';
  return html`<section aria-label="What would be created">
    ${verdict} ${yamlOf(plan.object)}
    <button type="button" data-copy="yaml-text">Copy the YAML</button>
  </section>`;
};

const importPage = (fields: Fields, tried: Tried): Page => {
  const isTried = tried.planned !== undefined && tried.error === undefined;
  return {
    title: 'Import',
    section: '/import',
    body: html`<h1>Import an image</h1>
      ${tried.error === undefined ? '' : trouble(tried.error)}
      <div class="beside">${formOf(fields, isTried)} ${planned(tried)}</div>`,
  };
};

/** What the cluster makes of it; nothing is kept of a check. */
const tryOut = async (c: ConsoleContext, fields: Fields, dryRun: boolean): Promise<Tried> => {
  let plan: Planned | undefined;
  try {
    plan = planOf(fields);
    await c.get('visit').kube.create(plan.type, plan.object, { dryRun });
    return { planned: plan };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return plan === undefined ? { error } : { planned: plan, error };
  }
};

export const addImport = (app: ConsoleApp): void => {
  app.get('/import', (c) => {
    const namespace = namespaceOf(c.get('visit').session) ?? 'default';
    return show(c, importPage({ namespace, ...c.req.query() }, {}));
  });
  app.post('/import', async (c) => {
    const fields = await readForm(c);
    const isApplied = fields['step'] === 'apply';
    const tried = await tryOut(c, fields, !isApplied);
    if (tried.planned === undefined || tried.error !== undefined) return show(c, importPage(fields, tried), 400);
    if (!isApplied) return show(c, importPage(fields, tried));
    const { type, object } = tried.planned;
    return c.redirect(objectPath(type as AnyType, object.metadata), 303);
  });
};
