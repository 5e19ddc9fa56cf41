// How a session begins and ends: by a token, by the code that npm start prints, or by a login at the issuer.
import { html } from 'hono/html';
import { loginPage } from '#shared/console/login-page.ts';
import {
  type OidcOptions,
  attemptCookie,
  attemptSeconds,
  beginLogin,
  callbackPath,
  finishLogin,
} from '#shared/console/oidc.ts';
import { type VisitorIdentity, cookieOf, loginCookieOf, openSession, seal } from '#shared/console/session.ts';
import { type ConsoleApp, type ConsoleContext, type ConsoleDeps, readForm, show } from '#shared/console/visit.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const isSecure = (request: Request, url: string | undefined): boolean =>
  [url ?? request.url, `${request.headers.get('x-forwarded-proto')}:`].some((text) => /^https:/i.test(text));

/** Value of a cookie; `undefined`: the request has none of that name. */
export const cookieIn = (request: Request, name: string): string | undefined =>
  request.headers
    .get('cookie')
    ?.split(/; */)
    .find((part) => part.startsWith(`${name}=`))
    ?.slice(name.length + 1);

const enter = async (c: ConsoleContext, deps: ConsoleDeps, identity: VisitorIdentity): Promise<void> => {
  const session = await openSession(await deps.connect(identity), identity, deps.now());
  const options = { until: session.until, now: deps.now(), isSecure: isSecure(c.req.raw, deps.url) };
  c.header('set-cookie', cookieOf(await seal(session, deps.sessionKey), options), { append: true });
};

/** Not a redirect: a browser that came from another page would not send the new cookie along. */
const welcome = (c: ConsoleContext) => {
  c.header('refresh', '0; url=/objects');
  return show(c, { title: 'Logged in', body: html`<p><a href="/objects">Continue to the images</a></p>` });
};

const addIssuer = (app: ConsoleApp, deps: ConsoleDeps, oidc: OidcOptions): void => {
  const { sessionKey: key, now } = deps;
  const setAttempt = (c: ConsoleContext, sealed: string, seconds: number): void =>
    c.header('set-cookie', loginCookieOf(sealed, { isSecure: isSecure(c.req.raw, deps.url), seconds }));
  app.get('/login/oidc', async (c) => {
    const { location, cookie } = await beginLogin(oidc, key, now());
    setAttempt(c, cookie, attemptSeconds);
    return c.redirect(location, 303);
  });
  app.get(callbackPath, async (c) => {
    const cookie = cookieIn(c.req.raw, attemptCookie) ?? '';
    setAttempt(c, '', 0);
    try {
      const token = await finishLogin(oidc, { query: c.req.query(), cookie, key, now: now() });
      await enter(c, deps, { token });
    } catch (error) {
      if (error instanceof InvalidInput) return show(c, loginPage(oidc.issuer, error.message), 401);
      throw error;
    }
    return welcome(c);
  });
};

export const addLogin = (app: ConsoleApp, deps: ConsoleDeps): void => {
  const issuer = deps.oidc?.issuer;
  const usedCode = 'This address was already used, or belongs to an earlier start: npm start prints a new one.';
  app.get('/login', async (c) => {
    const code = c.req.query('code');
    if (code === undefined) return show(c, loginPage(issuer));
    if (deps.takeCode?.(code) !== true) return show(c, loginPage(issuer, usedCode), 401);
    await enter(c, deps, 'owner');
    return welcome(c);
  });
  app.post('/login', async (c) => {
    const { token = '' } = await readForm(c);
    if (!/^[\w.~+/=-]+$/.test(token))
      return show(c, loginPage(issuer, 'Paste a token: kubectl create token makes one.'), 400);
    try {
      await enter(c, deps, { token });
    } catch (error) {
      if (error instanceof InvalidInput) return show(c, loginPage(issuer, error.message), 401);
      throw error;
    }
    return c.redirect('/objects', 303);
  });
  app.post('/logout', (c) => {
    c.header('set-cookie', cookieOf('', { until: 0, now: 0, isSecure: isSecure(c.req.raw, deps.url) }));
    return c.redirect('/login', 303);
  });
  if (deps.oidc !== undefined) addIssuer(app, deps, deps.oidc);
};
