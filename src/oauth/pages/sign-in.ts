import type { Authorization, FactorChoice } from "../actions/authorize.ts";
import { html, type PageHead, pageResponse } from "./page.ts";

interface SignInPage {
  readonly authorization: Authorization;
  readonly ticket: string;
  /** The email that the user typed before the form was rejected; the form shows it again. */
  readonly email?: string;
  readonly problem?: string;
}

/**
 * Renders the sign-in form, which has three buttons and no script. The Enter key in a field activates the first
 * button, `sign_in`.
 */
export function signInPage(
  { authorization, ticket, email, problem }: SignInPage,
  head: PageHead,
): Response {
  const { client, redirectUri } = authorization;
  const fieldError = problem === undefined ? undefined : html` aria-describedby="problem"`;
  const atEmail = email === undefined ? html` autofocus` : undefined;
  const atPassword = email === undefined ? undefined : html` autofocus`;
  const body = html`${problem !== undefined ? html`<p class="problem" id="problem" role="alert">${problem}</p>` : undefined}
    <p>to continue to <strong>${client.name}</strong></p>
    <form method="post" action="/oauth/authorize">
      <input type="hidden" name="ticket" value="${ticket}" />
      <label for="email">Email</label>
      <input
        id="email"
        name="email"
        type="email"
        value="${email}"
        autocomplete="username"
        required
        maxlength="254"
        spellcheck="false"
        autocapitalize="none"
        ${fieldError}${atEmail}
      />
      <label for="password">Password</label>
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
        maxlength="128"
        ${fieldError}${atPassword}
      />
      <button name="action" value="sign_in">Sign in</button>
      <button class="plain" name="action" value="sso" formnovalidate>
        Use single sign-on instead
      </button>
      <button class="plain quiet" name="action" value="deny" formnovalidate>
        Cancel and go back
      </button>
    </form>`;
  const title = problem === undefined ? "Sign in" : "Sign in: there is a problem";
  return pageResponse({ branding: client.branding, title, body, redirectUri }, head);
}

/**
 * Renders a page that takes the browser to an identity provider with a meta refresh. An HTTP redirect as the response
 * to a form would not work: browsers apply the `form-action` policy of the form's page to the redirect, and that policy
 * does not name the identity provider.
 */
export function redirectPage({ client }: Authorization, url: string, head: PageHead): Response {
  const body = html`<p>You then return to this page.</p>
    <p><a href="${url}">If nothing happens, continue here</a></p>`;
  const title = "Continue to your company's sign-in";
  return pageResponse({ branding: client.branding, title, body, refreshTo: url }, head);
}

const DAY_S = 86_400;

/** Formats a time for people, such as "1 minute 5 seconds". */
export function inWords(seconds: number): string {
  const parts = [
    countInWords(Math.floor(seconds / DAY_S), "day"),
    countInWords(Math.floor(seconds / 60) % (DAY_S / 60), "minute"),
    countInWords(seconds % 60, "second"),
  ];
  return parts.filter((part) => part !== undefined).join(" ") || "1 second";
}

function countInWords(many: number, unit: string): string | undefined {
  return many === 0 ? undefined : `${many} ${unit}${many === 1 ? "" : "s"}`;
}

interface FactorPage extends FactorChoice {
  readonly authorization: Authorization;
  readonly ticket: string;
  readonly problem: string | undefined;
}

/**
 * Script that shows the passkey button if the browser supports passkeys. A click on the button asks the browser for an
 * assertion and sends it with the form.
 */
const PASSKEY_SCRIPT = `
const button = document.getElementById("use-passkey");
if (window.PublicKeyCredential?.parseRequestOptionsFromJSON) button.hidden = false;
button.addEventListener("click", async () => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(button.dataset.options));
  const credential = await navigator.credentials.get({ publicKey });
  const { form } = button;
  form.elements.namedItem("passkey").value = JSON.stringify(credential.toJSON());
  form.submit();
});`;

/**
 * Renders the form that asks for a second factor after the password. The page contains the script only for users with a
 * passkey.
 */
export function factorPage(
  { authorization, ticket, options, problem }: FactorPage,
  head: PageHead,
): Response {
  const { client, redirectUri } = authorization;
  const fieldError = problem === undefined ? undefined : html` aria-describedby="problem"`;
  const passkey =
    options &&
    html`<input type="hidden" name="passkey" />
      <button
        class="plain"
        type="button"
        id="use-passkey"
        data-options="${JSON.stringify(options)}"
        hidden
      >
        Use a passkey
      </button>`;
  const body = html`${problem !== undefined ? html`<p class="problem" id="problem" role="alert">${problem}</p>` : undefined}
    <p>to continue to <strong>${client.name}</strong></p>
    <form method="post" action="/oauth/authorize">
      <input type="hidden" name="ticket" value="${ticket}" />
      <label for="code">Code from your authenticator app, or a recovery code</label>
      <input
        id="code"
        name="code"
        type="text"
        autocomplete="one-time-code"
        maxlength="64"
        spellcheck="false"
        autocapitalize="none"
        autofocus
        ${fieldError}
      />
      <button name="action" value="prove">Continue</button>
      ${passkey}
      <button class="plain quiet" name="action" value="deny" formnovalidate>
        Cancel and go back
      </button>
    </form>`;
  const heading = "Second step";
  const title = problem === undefined ? heading : `${heading}: there is a problem`;
  const script = options === undefined ? {} : { script: PASSKEY_SCRIPT };
  return pageResponse({ branding: client.branding, title, body, redirectUri, ...script }, head);
}
