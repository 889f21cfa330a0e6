import type { Config } from "../../lib/config.ts";
import type { Authorization } from "../actions/authorize.ts";
import { destinationOf } from "../redirect-uri.ts";
import { html, pageResponse } from "./page.ts";
import { inWords } from "./sign-in.ts";

/** Descriptions of the scopes, as the consent page shows them to the user. */
const IN_WORDS: Readonly<Record<string, string>> = {
  "*": "do everything that you can do here",
  "reviews:read": "see your reviews",
  "reviews:write": "answer, flag and assign your reviews",
  "webhooks:read": "see your webhooks and what they delivered",
  "webhooks:write": "make, change and delete your webhooks",
  "clients:write": "manage your OAuth clients",
  impersonate: "act for the owners of your accounts",
};

const DAY_S = 86_400;

interface Consent {
  readonly ticket: string;
  readonly email: string;
  readonly config: Pick<Config, "accessTokenTtlS" | "refreshTokenTtlS" | "refreshMaxDays">;
}

export function consentPage(
  authorization: Authorization,
  { ticket, email, config }: Consent,
): Response {
  const { client, redirectUri, scope } = authorization;
  const scopes = scope.split(" ").map((one) => html`<li>${IN_WORDS[one] ?? one}</li> `);
  const body = html`<p>
      You are signed in as <strong>${email}</strong>. <strong>${client.name}</strong> asks for leave
      to:
    </p>
    <ul>
      ${scopes}
    </ul>
    <p class="soft">${lifeOf(client, config)} You can end it in the dashboard, under Security.</p>
    <p class="soft">
      Afterwards you are sent to ${destinationOf(redirectUri)}. Continue only if you trust it.
    </p>
    <form method="post" action="/oauth/authorize">
      <input type="hidden" name="ticket" value="${ticket}" />
      <button name="action" value="allow">Allow</button>
      <button class="plain" name="action" value="deny">Deny</button>
    </form>`;
  const title = `Allow ${client.name} to act for you?`;
  return pageResponse({ branding: client.branding, title, body, redirectUri }, { status: 200 });
}

function lifeOf({ grantTypes }: Authorization["client"], config: Consent["config"]): string {
  const { accessTokenTtlS, refreshTokenTtlS, refreshMaxDays } = config;
  if (!grantTypes.includes("refresh_token"))
    return `The access ends after ${inWords(accessTokenTtlS)}.`;
  const atMost = refreshMaxDays === null ? "" : `, for ${inWords(refreshMaxDays * DAY_S)} at most`;
  return `The access lasts for as long as the app renews it within ${inWords(refreshTokenTtlS)}${atMost}.`;
}
