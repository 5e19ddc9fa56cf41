// The script of the page that sends files, behind the client of tus, and computes what their bytes amount to: a browser cannot hash a file in parts
// by itself.
import { readFileSync } from 'node:fs';

/** Defines `tus`. In bundles, the text itself. */
const client = readFileSync(new URL(import.meta.resolve('tus-js-client/dist/tus.min.js')), 'utf8');

/** `createSum()`, to which bytes are added; beside the rest for its tests. */
export const sumScript = String.raw`
/* SHA-256 of a file in parts (FIPS 180-4). */
const roots = (power, count) => {
  const found = [];
  for (let n = 2; found.length < count; n += 1) {
    if (found.some(({ prime }) => n % prime === 0)) continue;
    const root = n ** (1 / power);
    found.push({ prime: n, word: Math.floor((root - Math.floor(root)) * 4294967296) });
  }
  return Uint32Array.from(found, ({ word }) => word);
};
const createSum = () => {
  const rounds = roots(3, 64);
  const state = roots(2, 8);
  const words = new Uint32Array(64);
  const rest = new Uint8Array(64);
  let length = 0;
  const block = (view, at) => {
    for (let t = 0; t < 16; t += 1) words[t] = view.getUint32(at + t * 4);
    for (let t = 16; t < 64; t += 1) {
      const x = words[t - 15], y = words[t - 2];
      const near = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const far = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[t] = words[t - 16] + near + words[t - 7] + far;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let t = 0; t < 64; t += 1) {
      const one = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const first = (h + one + ((e & f) ^ (~e & g)) + rounds[t] + words[t]) | 0;
      const zero = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const second = (zero + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + first) | 0; d = c; c = b; b = a; a = (first + second) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => (state[index] += word));
  };
  const add = (bytes) => {
    const held = length % 64;
    length += bytes.length;
    let at = 0;
    if (held > 0) {
      at = Math.min(64 - held, bytes.length);
      rest.set(bytes.subarray(0, at), held);
      if (held + at < 64) return;
      block(new DataView(rest.buffer), 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (; at + 64 <= bytes.length; at += 64) block(view, at);
    rest.set(bytes.subarray(at));
  };
  const end = () => {
    const bits = length * 8;
    const tail = new Uint8Array(((length % 64 < 56 ? 56 : 120) - (length % 64)) + 8);
    tail[0] = 128;
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(bits / 4294967296));
    view.setUint32(tail.length - 4, bits >>> 0);
    add(tail);
    return [...state].map((word) => word.toString(16).padStart(8, '0')).join('');
  };
  return { add, end };
};
`;

export const uploadScript = String.raw`${client}
/* An upload: tus-js-client sends it in parts; where it stands is asked of the other side each time, so that any browser can go on. */
const fail = (message, isFinal) => Object.assign(new Error(message), { isFinal });
const refusal = (status, words) => {
  let message = words.slice(0, 300);
  try { message = JSON.parse(words).message || message; } catch {}
  return fail(message || 'status ' + status, status >= 400 && status < 500 && ![401, 408, 409, 410, 423, 429].includes(status));
};
const ask = async (url, options) => {
  const answer = await fetch(url, options).catch(() => { throw fail('the connection was lost'); });
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  return answer.json();
};
/* A volume is made before the file arrives, as large as its disk. */
const diskBytesOf = async (file, form) => {
  const given = form.elements.virtualSize.value.trim();
  if (given !== '') return given;
  const head = new DataView(await new Blob([file.slice(0, 512), new Uint8Array(512)]).arrayBuffer());
  const magic = head.getUint32(0);
  if (magic === 0x514649fb) return String(head.getBigUint64(24));
  if (head.getUint32(64, true) === 0xbeda107f) return String(head.getBigUint64(368, true));
  const isPacked = head.getUint16(0) === 0x1f8b || [0xfd377a58, 0x28b52ffd, 0x4b444d56, 0x76686478, 0x636f6e65].includes(magic);
  if (isPacked) throw fail('this file does not state the size of its disk: fill in the bytes of the disk (qemu-img info shows them)', true);
  return String(file.size);
};
${sumScript}/* What the client reports, in the words of the other side. */
const reasonOf = (error) => {
  const { originalRequest, originalResponse: answer, causingError: cause } = error;
  if (answer) return refusal(answer.getStatus(), answer.getBody());
  if (cause instanceof Error) return cause;
  return originalRequest ? fail('the connection was lost') : error;
};
/* From where it stands to its end. */
const proceed = async (file, form, events, sumTo) => {
  let ticket, until = 0;
  const authorize = async () => {
    /* A ticket lasts five minutes. */
    if (Date.now() > until) {
      ticket = await ask(form.dataset.ticket, { method: 'POST' });
      until = Date.now() + 240000;
    }
    return ticket.authorization;
  };
  const authorization = await authorize();
  const { url } = ticket;
  const { stage, message, upload } = await ask(url, { headers: { authorization } });
  if (stage === 'done') return;
  if (['no-upload', 'theirs'].includes(stage)) throw fail(message, true);
  const place = upload && upload.length === file.size
    ? { uploadUrl: url + '/' + upload.id }
    : { endpoint: url, metadata: { virtualSize: await diskBytesOf(file, form) } };
  const onBeforeRequest = async (request) => {
    await sumTo(Number(request.getHeader('Upload-Offset') ?? 0));
    request.setHeader('authorization', await authorize());
  };
  /* Retried from here on, since the other side may have forgotten it, or be done. */
  const options = { ...place, ...events, onBeforeRequest, chunkSize: 16 * 1024 * 1024, retryDelays: null, storeFingerprintForResuming: false };
  await new Promise((onSuccess, reject) =>
    new tus.Upload(file, { ...options, onSuccess, onError: (error) => reject(reasonOf(error)) }).start());
};
const upload = async (file, form, show) => {
  const sum = createSum();
  let reached = 0;
  let failures = 0;
  /* It follows what is sent, and reads what was sent before a reload. */
  const sumTo = async (place) => {
    for (; reached < place; reached = Math.min(place, reached + 1048576))
      sum.add(new Uint8Array(await file.slice(reached, Math.min(place, reached + 1048576)).arrayBuffer()));
  };
  const events = { onProgress: (sent) => show(sent / file.size), onChunkComplete: () => (failures = 0) };
  for (;;) {
    try {
      await proceed(file, form, events, sumTo);
      await sumTo(file.size);
      return sum.end();
    } catch (error) {
      /* A computer that slept, or has no network, comes back some time. */
      if (error.isFinal) throw error;
      failures += 1;
      show(undefined, error.message + '; retrying');
      await new Promise((resolve) => setTimeout(resolve, Math.min(30000, 500 * 2 ** failures)));
    }
  }
};
const forms = [...document.querySelectorAll('form.upload')];
const sending = new Set();
for (const form of forms) {
  const bar = form.querySelector('progress');
  const state = form.querySelector('[role=status]');
  const { file: input } = form.elements;
  const drop = form.querySelector('.drop');
  const show = (share, words) => {
    if (share !== undefined) bar.value = share * 100;
    state.textContent = words || Math.floor(bar.value) + '%';
  };
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const [file] = input.files;
    if (sending.has(form) || !file) return;
    sending.add(form);
    bar.hidden = false;
    show(0);
    try {
      const done = form.dataset.done + '?sha256=' + (await upload(file, form, show));
      sending.delete(form);
      if (forms.length === 1) return location.assign(done);
      const link = Object.assign(document.createElement('a'), { href: done, textContent: 'Sent' });
      state.replaceChildren(link);
    } catch (error) {
      show(undefined, 'The upload failed: ' + error.message);
    } finally {
      sending.delete(form);
    }
  });
  for (const name of ['dragover', 'dragleave', 'drop'])
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle('over', name === 'dragover');
      /* Several files fill this form and those below it. */
      if (name !== 'drop') return;
      [...event.dataTransfer.files].forEach((file, index) => {
        const target = forms[forms.indexOf(form) + index];
        if (!target) return;
        const one = new DataTransfer();
        one.items.add(file);
        target.elements.file.files = one.files;
      });
    });
}
addEventListener('beforeunload', (event) => sending.size > 0 && event.preventDefault());
document.getElementById('upload-all')?.addEventListener('click', () => forms.forEach((form) => form.elements.file.files[0] && form.requestSubmit()));
`;
