// A file from the browser into an image: the script sends it to the transfer function, with a ticket for this image alone, and resumes there.
import { html } from 'hono/html';
import { imageTypes } from '#shared/catalogue/image.ts';
import { ensureUploadImage, getTicket, type Ticket } from '#shared/catalogue/ticket.ts';
import { type Page, field, notice } from '#shared/console/markup.ts';
import { objectPath, uploadPath } from '#shared/console/query.ts';
import { namespaceOf, wordsOf } from '#shared/console/session.ts';
import { type ConsoleApp, type ConsoleContext, policyOf, readForm, show, webUrl } from '#shared/console/visit.ts';
import { AppError } from '#shared/runtime/errors.ts';

type Fields = Readonly<Record<string, string>>;

const newPage = (fields: Fields, trouble?: string): Page => ({
  title: 'Upload',
  section: '/upload',
  body: html`<h1>Upload a file</h1>
    ${trouble === undefined ? '' : notice('error', trouble)}
    <form method="post" action="/upload">
      ${field({ name: 'name', label: 'Name of the image', value: fields['name'], required: true })}
      ${field({ name: 'namespace', label: 'Namespace', value: fields['namespace'], required: true })}
      ${field({ name: 'storageClass', label: 'Storage class', value: fields['storageClass'], hint: 'Default: the default class.' })}
      <button class="main">Continue to the file</button>
    </form>`,
});

const filePage = (place: { readonly namespace: string; readonly name: string }): Page => ({
  title: `Upload into ${place.name}`,
  section: '/upload',
  body: html`<h1>Upload into ${place.name}</h1>
    <p>
      Namespace ${place.namespace}. An upload that was interrupted resumes: come back to this page and choose the same
      file.
    </p>
    <noscript
      >${notice('error', 'Files are sent by a script, which this browser does not run: use bullion upload.')}</noscript
    >
    <form
      id="upload-form"
      data-ticket="${uploadPath(place)}/ticket"
      data-done="${objectPath(imageTypes.harvester, place)}"
    >
      <div class="field drop">
        <label for="file">File</label>
        <input type="file" id="file" required aria-describedby="file-hint" />
        <p class="hint" id="file-hint">
          Choose it, or drag it here: qcow2, raw, ISO, vmdk, vdi, vhd, vhdx, also in gz, xz or zst.
        </p>
      </div>
      ${field({ name: 'virtualSize', label: 'Bytes of the disk', hint: 'Only for a compressed file that does not state it.' })}
      <button class="main">Upload</button>
      <p>
        <progress id="upload-progress" max="100" value="0" aria-label="Upload" hidden></progress>
        <span id="upload-state" role="status"></span>
      </p>
    </form>`,
});

const ticketFor = (c: ConsoleContext): Promise<Ticket> => {
  const { namespace = '', name = '' } = c.req.param() as Fields;
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
    const { name = '', namespace = '', storageClass } = fields;
    try {
      await ensureUploadImage(c.get('visit').kube, { name, namespace, storageClass: storageClass || undefined });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return show(c, newPage(fields, wordsOf(error)), 400);
    }
    return c.redirect(uploadPath({ namespace, name }), 303);
  });
  app.get('/upload/:namespace/:name', async (c) => {
    const { namespace, name } = c.req.param();
    // The page may send to this one other place.
    const { origin } = webUrl((await ticketFor(c)).url);
    c.header('content-security-policy', policyOf(origin));
    return show(c, filePage({ namespace, name }));
  });
  app.post('/upload/:namespace/:name/ticket', async (c) => {
    const { url, headers } = await ticketFor(c);
    return c.json({ url: webUrl(url).href, authorization: headers.authorization });
  });
};
