// The URL of an image file as users write it. Dialects interpret it with this, and admission refuses what it refuses.
import type { Parsed } from '#shared/backends/rules/checksum.ts';

const schemes = ['http:', 'https:'];

/** An absolute http or https URL. Credentials are refused: whoever can read the object would read them, too. */
export const parseSourceUrl = (text: string): Parsed<string> => {
  const trimmed = text.trim();
  if (trimmed === '') return { problem: 'is empty; write the http or https URL of an image file' };
  const url = URL.parse(trimmed);
  // Nothing of the text is repeated: it may hold a password.
  if (url === null) return { problem: 'is no URL; write it in full, such as https://host/path/disk.qcow2' };
  if (!schemes.includes(url.protocol)) {
    return { problem: `has the scheme ${JSON.stringify(url.protocol.slice(0, -1))}; only http and https are served` };
  }
  if (!/^https?:\/\//iu.test(trimmed)) return { problem: 'lacks // after its scheme; write https://host/path' };
  if (url.username !== '' || url.password !== '') {
    return { problem: 'holds a user name or password, which everybody who can read this object would see; remove it' };
  }
  return { value: trimmed };
};
