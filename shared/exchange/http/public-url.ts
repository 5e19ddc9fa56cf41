// The public URL of the transfer function: configured, else from the headers of proxies, else the URL of the request. Pure.

/** Forwarded headers may be lists; the first entry is the one of the outermost proxy. */
const first = (request: Request, name: string): string | undefined =>
  request.headers.get(name)?.split(',')[0]?.trim() || undefined;

const hostPattern = /^[\w.-]+(:\d{1,5})?$|^\[[\da-f:]+\](:\d{1,5})?$/i;
const prefixPattern = /^(\/[\w.~-]+)+$/;

/** Without a trailing slash. The value of a header is used only in the answer to its sender; invalid hosts, schemes and paths are ignored. */
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

/** `/bullion` of `https://images.example/bullion`; empty if there is none. */
export const prefixOf = (publicUrl: string | undefined): string =>
  publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
