import type { Branding } from "../queries/clients.ts";
import { html } from "./html.ts";
import { pageResponse, type PageHead } from "./page.ts";

/** Where no client is known whose tenant could be shown. */
const NOBODY: Branding = { name: "Sign-in", primaryColor: "", logoUrl: null };

/** A dead end: there is no place that is safe to go on to. */
export function failurePage(message: string, head: PageHead): Response {
  const body = html`<p class="problem" role="alert">${message}</p>
    <p>Go back to the app that you came from and start again there.</p>`;
  return pageResponse({ branding: NOBODY, title: "This does not work", body }, head);
}
