import { ULID_PATTERN } from "../../http/text.ts";

/*
 * The pages that a portal link opens (contract 6.20), named by their dashboard paths: `webhooks` opens all
 * subscriptions, `webhooks/{id}` opens one.
 */

type PortalPages = readonly string[];
/** Decides whether a route belongs to the pages that a portal link opens. */
export type Opens = (pages: PortalPages) => boolean;

const WEBHOOKS = "webhooks";
const ONE_WEBHOOK = `${WEBHOOKS}/`;

export const PORTAL_PAGE = `^${WEBHOOKS}(/${ULID_PATTERN})?$`;

export const nothing: Opens = () => false;
export const everything: Opens = () => true;
export const opensAllWebhooks: Opens = (pages) => pages.includes(WEBHOOKS);
export const opensWebhooks: Opens = (pages) =>
  pages.some((page) => page === WEBHOOKS || page.startsWith(ONE_WEBHOOK));

export function opensSubscription(pages: PortalPages | null, id: string): boolean {
  return pages === null || opensAllWebhooks(pages) || pages.includes(ONE_WEBHOOK + id);
}

/** Returns the ids of the webhook subscriptions that the pages of a portal link name individually. */
export function subscriptionsOf(pages: PortalPages): string[] {
  return pages
    .filter((page) => page.startsWith(ONE_WEBHOOK))
    .map((page) => page.slice(ONE_WEBHOOK.length));
}
