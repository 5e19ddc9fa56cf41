// How somebody says who they are.
import { html } from 'hono/html';
import { type Page, notice } from '#shared/console/markup.ts';

/** `issuer`: where somebody can log in without a token. */
export const loginPage = (issuer: string | undefined, trouble?: string): Page => ({
  title: 'Log in',
  body: html`<h1>Log in</h1>
    ${trouble === undefined ? '' : notice('error', trouble)}
    ${
      issuer === undefined
        ? ''
        : html`<p><a class="button" href="/login/oidc">Log in with ${new URL(issuer).host}</a></p>
            <h2>Or with a token</h2>`
    }
    <form method="post" action="/login">
      <div class="field">
        <label for="token">Token</label>
        <textarea
          id="token"
          name="token"
          required
          spellcheck="false"
          autocomplete="off"
          aria-describedby="token-hint"
        ></textarea>
        <p class="hint" id="token-hint">
          You see and do here what the token may: <code>kubectl create token &lt;service account&gt;</code>, or the ID
          token of your OIDC login. It is kept in a sealed cookie of this browser, and sent to the API server alone.
        </p>
      </div>
      <button class="main">Log in</button>
    </form>`,
});
