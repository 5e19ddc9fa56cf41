// `WWW-Authenticate` of a registry: which kind of login it asks for. Pure.

export type Challenge =
  | { readonly scheme: 'basic' }
  | {
      readonly scheme: 'bearer';
      readonly realm: URL;
      readonly service?: string | undefined;
      readonly scope?: string | undefined;
    };

const parameter = /([a-z][a-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

const parametersOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(parameter)].map(([, name = '', quoted, bare]) => [
      name.toLowerCase(),
      quoted?.replace(/\\(.)/g, '$1') ?? bare ?? '',
    ]),
  );

/** The first challenge we can answer, bearer before basic; `undefined` for none. */
export const parseChallenge = (header: string | undefined): Challenge | undefined => {
  const text = header ?? '';
  const bearer = /(?:^|,)\s*bearer\s+(.*)$/i.exec(text)?.[1];
  const { realm = '', service, scope } = parametersOf(bearer ?? '');
  if (URL.canParse(realm)) return { scheme: 'bearer', realm: new URL(realm), service, scope };
  return /(?:^|,)\s*basic\b/i.test(text) ? { scheme: 'basic' } : undefined;
};
