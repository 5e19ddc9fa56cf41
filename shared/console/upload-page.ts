// Files from the browser into images: the script sends each to the transfer function, with a ticket for its image alone, and resumes there.
import { html } from 'hono/html';
import { imageTypes } from '#shared/catalogue/image.ts';
import { ensureUploadImage, getTicket, type Ticket } from '#shared/catalogue/ticket.ts';
import { type Markup, type Page, field, notice } from '#shared/console/markup.ts';
import { objectPath, uploadPath } from '#shared/console/query.ts';
import { namespaceOf, wordsOf } from '#shared/console/session.ts';
import { type ConsoleApp, type ConsoleContext, policyOf, readForm, show, webUrl } from '#shared/console/visit.ts';
import { AppError, InvalidInput } from '#shared/runtime/errors.ts';

type Fields = Readonly<Record<string, string>>;

/** Images that one page sends files to. */
const mostFiles = 20;

const newPage = (fields: Fields, trouble?: string): Page => ({
  title: 'Upload',
  section: '/upload',
  body: html`<h1>Upload files</h1>
    ${trouble === undefined ? '' : notice('error', trouble)}
    <form method="post" action="/upload">
      ${field({ name: 'name', label: 'Name of the image', value: fields['name'], hint: 'For several files: a name for each, separated by spaces.', required: true })}
      ${field({ name: 'namespace', label: 'Namespace', value: fields['namespace'], required: true })}
      ${field({ name: 'storageClass', label: 'Storage class', value: fields['storageClass'], hint: 'Default: the default class.' })}
      <button class="main">Continue to the files</button>
    </form>`,
});

interface Place {
  readonly namespace: string;
  readonly name: string;
}

const fileForm = (place: Place, isOnly: boolean): Markup => {
  const { name } = place;
  return html`<form
    class="upload"
    aria-label="${name}"
    data-ticket="${uploadPath(place)}/ticket"
    data-done="${objectPath(imageTypes.harvester, place)}"
  >
    ${isOnly ? '' : html`<h2>${name}</h2>`}
    <div class="field drop">
      <label for="file-${name}">File</label>
      <input type="file" id="file-${name}" name="file" required aria-describedby="hint-${name}" />
      <p class="hint" id="hint-${name}">
        Choose it, or drag it here: qcow2, raw, ISO, vmdk, vdi, vhd, vhdx, also in gz, xz or zst.
      </p>
    </div>
    <div class="field">
      <label for="virtualSize-${name}">Bytes of the disk</label>
      <input id="virtualSize-${name}" name="virtualSize" autocomplete="off" aria-describedby="size-${name}" />
      <p class="hint" id="size-${name}">Only for a compressed file that does not state it.</p>
    </div>
    <button class="${isOnly ? 'main' : ''}">Upload</button>
    <p>
      <progress max="100" value="0" aria-label="Upload of ${name}" hidden></progress>
      <span role="status"></span>
    </p>
  </form>`;
};

const filePage = (namespace: string, names: readonly string[]): Page => ({
  title: `Upload into ${names.join(', ')}`,
  section: '/upload',
  body: html`<h1>Upload into ${names.join(', ')}</h1>
    <p>
      Namespace ${namespace}. An upload that was interrupted resumes: come back to this page and choose the same file.
      What arrives is compared with the file by its sha256.
    </p>
    <noscript
      >${notice('error', 'Files are sent by a script, which this browser does not run: use bullion upload.')}</noscript
    >
    ${names.map((name) => fileForm({ namespace, name }, names.length === 1))}
    ${names.length === 1 ? '' : html`<p><button class="main" id="upload-all" type="button">Upload all</button></p>`}
    <script src="/upload.js" defer></script>`,
});

const ticketFor = (c: ConsoleContext, { namespace, name }: Place): Promise<Ticket> => {
  const target = { plural: 'virtualmachineimages', namespace, name } as const;
  const { kube } = c.get('visit');
  return getTicket({ kube, operation: 'upload', target, server: undefined, bearer: async () => undefined });
};

export const addUpload = (app: ConsoleApp): void => {
  app.get('/upload', (c) => {
    const namespace = namespaceOf(c.get('visit').session) ?? 'default';
    return show(c, newPage({ namespace, ...c.req.query() }));
  });
  app.post('/upload', async (c) => {
    const fields = await readForm(c);
    const { name: text = '', namespace = '', storageClass } = fields;
    const names = [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];
    try {
      if (names.length === 0 || names.length > mostFiles)
        throw new InvalidInput(`a page sends 1 to ${mostFiles} files, not ${names.length}`);
      for (const name of names)
        // One after the other: the first that is refused ends it.
        await ensureUploadImage(c.get('visit').kube, { name, namespace, storageClass: storageClass || undefined });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return show(c, newPage(fields, wordsOf(error)), 400);
    }
    return c.redirect(uploadPath({ namespace, name: names.join(',') }), 303);
  });
  // Names of images contain no comma.
  app.get('/upload/:namespace/:names', async (c) => {
    const { namespace, names: text } = c.req.param();
    const names = text.split(',').slice(0, mostFiles);
    // The page may send to these places, which are one, and to no other.
    const tickets = await Promise.all(names.map((name) => ticketFor(c, { namespace, name })));
    const origins = new Set(tickets.map(({ url }) => webUrl(url).origin));
    c.header('content-security-policy', policyOf([...origins].join(' ')));
    return show(c, filePage(namespace, names));
  });
  app.post('/upload/:namespace/:name/ticket', async (c) => {
    const { url, headers } = await ticketFor(c, c.req.param());
    return c.json({ url: webUrl(url).href, authorization: headers.authorization });
  });
};
