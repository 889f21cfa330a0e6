import type { Branding } from "../queries/clients.ts";
import { html } from "./html.ts";
import { pageResponse, type PageHead } from "./page.ts";

/** The look of a page while no client, and so no tenant, is known. */
const NO_TENANT: Branding = { name: "Sign-in", primaryColor: "", logoUrl: null };

/** Ends the flow: there is no place that is safe to send the user on to. */
export function failurePage(message: string, head: PageHead): Response {
  const body = html`<p class="problem" role="alert">${message}</p>
    <p>Go back to the app that you came from and start again there.</p>`;
  return pageResponse({ branding: NO_TENANT, title: "This does not work", body }, head);
}
