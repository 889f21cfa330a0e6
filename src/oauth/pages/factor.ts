import type { Authorization, FactorChoice } from "../actions/authorize.ts";
import { html, type PageHead, pageResponse } from "./page.ts";

interface FactorPage extends FactorChoice {
  readonly authorization: Authorization;
  readonly ticket: string;
  readonly problem: string | undefined;
}

/** Shows the button for a passkey where the browser has passkeys, and sends the form with the browser's assertion. */
const SCRIPT = `
const button = document.getElementById("use-passkey");
if (window.PublicKeyCredential?.parseRequestOptionsFromJSON) button.hidden = false;
button.addEventListener("click", async () => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(button.dataset.options));
  const credential = await navigator.credentials.get({ publicKey });
  const { form } = button;
  form.elements.namedItem("passkey").value = JSON.stringify(credential.toJSON());
  form.submit();
});`;

/** Renders the form that asks for a second factor after the password. Only users with a passkey get the script. */
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
      <label for="code">Code of your app, or a recovery code</label>
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
  const script = options === undefined ? {} : { script: SCRIPT };
  return pageResponse({ branding: client.branding, title, body, redirectUri, ...script }, head);
}
