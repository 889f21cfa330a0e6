import type { Authorization } from "../actions/authorize.ts";
import { html, type PageHead, pageResponse } from "./page.ts";

interface SignInPage {
  readonly authorization: Authorization;
  readonly ticket: string;
  /** The email that was typed before. */
  readonly email?: string;
  readonly problem?: string;
}

/** The form has three buttons and no script; Enter in a field presses the first of them. */
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
 * Sends the browser on to an identity provider, by a refresh and not by a redirect: a browser that has come by a form
 * holds redirects to the policy of the form, which names no provider.
 */
export function departurePage({ client }: Authorization, place: string, head: PageHead): Response {
  const body = html`<p>You come back here afterwards.</p>
    <p><a href="${place}">Go on, if nothing happens</a></p>`;
  const title = "On to your company's sign-in";
  return pageResponse({ branding: client.branding, title, body, goesOnTo: place }, head);
}

/** The wait of a lock for people: "1 minute 5 seconds". */
export function inWords(seconds: number): string {
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
  const parts = [count(minutes, "minute"), count(rest, "second")];
  return parts.filter((part) => part !== undefined).join(" ") || "1 second";
}

function count(many: number, unit: string): string | undefined {
  return many === 0 ? undefined : `${many} ${unit}${many === 1 ? "" : "s"}`;
}
