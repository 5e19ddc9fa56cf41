// The one redactor: all text in logs, statuses, events and error messages passes through it.

export const redacted = '[redacted]';

/** Scheme names are short in practice; the limit keeps the search linear on hostile text. */
const urlInText = /[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"<>]+/gi;
const credentialInText = /\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}/gi;
const assignmentInText =
  /\b([a-z_-]{0,40}(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key))(["']?\s{0,3}[=:]\s{0,3}["']?)([^\s"',;&}]{3,})/gi;
const webTokenInText = /\beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]*/gi;
const privateKeyInText = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|$)/g;

/**
 * The URL without user info, query and fragment; path and host stay as written. An invalid URL loses everything before its last `@`, since a
 * password may have made it invalid.
 */
export const redactUrl = (url: string): string => {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)([\s\S]*)$/i.exec(url);
  const scheme = match?.[1] ?? '';
  const rest = match?.[2] ?? url;
  return scheme + withoutUserInfo(rest, URL.canParse(url)).replace(/[?#][\s\S]*$/, '');
};

/** The text with every URL in it redacted, otherwise unchanged. */
export const redactUrls = (text: string): string => text.replace(urlInText, redactUrl);

const withoutUserInfo = (rest: string, isValid: boolean): string => {
  const authorityEnd = isValid ? rest.search(/[/?#\\]/) : -1;
  const authority = authorityEnd === -1 ? rest : rest.slice(0, authorityEnd);
  return authority.slice(authority.lastIndexOf('@') + 1) + rest.slice(authority.length);
};

/** The text redacted: URLs shortened, bearer and basic credentials, web tokens, `password=…` and private keys replaced. */
export const redact = (text: string): string =>
  redactUrls(text.replace(privateKeyInText, redacted))
    .replace(webTokenInText, redacted)
    .replace(credentialInText, `$1 ${redacted}`)
    .replace(assignmentInText, `$1$2${redacted}`);

const secretKey =
  /authorization|cookie|password|passwd|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key|dockerconfigjson/i;
/** Keys that refer to a secret but do not hold one: `secretRef`, `secretName`, `tokenExpiresAt`, `accessKeyId`. */
const secretName = /(ref|name|namespace|kind|id|count|at|type|size|bytes)$/i;

const isSecretKey = (key: string): boolean => secretKey.test(key) && !secretName.test(key);

/** A redacted copy of plain data: secrets by the name of the key, Secret objects by kind, texts by content. Cycles and deep nesting are cut off. */
export const redactData = (value: unknown, depth = 8): unknown => {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '[deep]';
  if (value instanceof Error) return redactError(value, depth);
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((item: unknown) => redactData(item, depth - 1));
  return redactObject(value, depth);
};

const redactObject = (object: object, depth: number): Record<string, unknown> => {
  const isSecret = 'kind' in object && object.kind === 'Secret';
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(object)) {
    const hide = isSecret ? key === 'data' || key === 'stringData' : isSecretKey(key) && isLeaf(value);
    result[key] = hide ? redacted : redactData(value, depth - 1);
  }
  return result;
};

/** Values of a secret key that are replaced as a whole. Numbers and objects below such a key are traversed instead. */
const isLeaf = (value: unknown): boolean => typeof value === 'string' || Array.isArray(value);

const redactError = (error: Error, depth: number): Record<string, unknown> => ({
  name: error.name,
  message: redact(error.message),
  ...('code' in error ? { code: error.code } : {}),
  ...(error.cause === undefined ? {} : { cause: redactData(error.cause, depth - 1) }),
});
