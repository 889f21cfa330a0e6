import type { Authorization } from "../actions/authorize.ts";
import { html, type PageHead, pageResponse } from "./page.ts";

interface SignInPage {
  readonly authorization: Authorization;
  readonly ticket: string;
  /** The email that the user typed before; the sign-in form shows it again. */
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
 * Renders a page that takes the browser to an identity provider with a meta refresh. A redirect would not work after
 * a form: browsers apply the `form-action` policy of the form's page to the redirect, and that policy does not name
 * the provider.
 */
export function redirectPage({ client }: Authorization, url: string, head: PageHead): Response {
  const body = html`<p>You come back here afterwards.</p>
    <p><a href="${url}">Continue, if nothing happens</a></p>`;
  const title = "On to your company's sign-in";
  return pageResponse({ branding: client.branding, title, body, refreshTo: url }, head);
}

const DAY_S = 86_400;

/** Formats a time for people, such as "1 minute 5 seconds". */
export function inWords(seconds: number): string {
  const parts = [
    count(Math.floor(seconds / DAY_S), "day"),
    count(Math.floor(seconds / 60) % (DAY_S / 60), "minute"),
    count(seconds % 60, "second"),
  ];
  return parts.filter((part) => part !== undefined).join(" ") || "1 second";
}

function count(many: number, unit: string): string | undefined {
  return many === 0 ? undefined : `${many} ${unit}${many === 1 ? "" : "s"}`;
}
