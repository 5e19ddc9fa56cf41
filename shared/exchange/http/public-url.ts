// Where people reach the transfer function: what its installation says, else what the proxies on the way say, else as it was called. Pure.

/** Of the form proxies give it: a list where there are several, of which the first is the one people spoke to. */
const first = (request: Request, name: string): string | undefined =>
  request.headers.get(name)?.split(',')[0]?.trim() || undefined;

const hostPattern = /^[\w.-]+(:\d{1,5})?$|^\[[\da-f:]+\](:\d{1,5})?$/i;
const prefixPattern = /^(\/[\w.~-]+)+$/;

/**
 * Without a slash at the end. What a header says goes into the answer to whoever sent it, and nowhere else; what is no host, scheme or path is
 * not taken over.
 */
export const publicUrlOf = (request: Request, publicUrl: string | undefined): string => {
  if (publicUrl !== undefined) return publicUrl.replace(/\/+$/, '');
  const { protocol, host } = new URL(request.url);
  const [scheme, name, prefix] = ['proto', 'host', 'prefix'].map((what) => first(request, `x-forwarded-${what}`));
  const isScheme = scheme === 'http' || scheme === 'https';
  return [
    isScheme ? `${scheme}:` : protocol,
    '//',
    name !== undefined && hostPattern.test(name) ? name : host,
    prefix !== undefined && prefixPattern.test(prefix) && !/\/\.\.?(\/|$)/.test(prefix) ? prefix : '',
  ].join('');
};

/** `/bullion` of `https://images.example/bullion`; empty where there is none. */
export const prefixOf = (publicUrl: string | undefined): string =>
  publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
