import { ULID_PATTERN } from "../http/text.ts";

/*
 * The pages that a portal link opens (contract 6.20), named by their dashboard paths: `webhooks` opens all
 * subscriptions, `webhooks/{id}` opens one.
 */

type Pages = readonly string[];
/** Decides whether a route belongs to the pages that a portal link opens. */
export type Opens = (pages: Pages) => boolean;

const WEBHOOKS = "webhooks";
const ONE = `${WEBHOOKS}/`;

export const PORTAL_PAGE = `^${WEBHOOKS}(/${ULID_PATTERN})?$`;

export const nothing: Opens = () => false;
export const everything: Opens = () => true;
export const opensAllWebhooks: Opens = (pages) => pages.includes(WEBHOOKS);
export const opensWebhooks: Opens = (pages) =>
  pages.some((page) => page === WEBHOOKS || page.startsWith(ONE));

export function opensSubscription(pages: Pages | null, id: string): boolean {
  return pages === null || opensAllWebhooks(pages) || pages.includes(ONE + id);
}

/** Returns the ids of the webhook subscriptions that the pages of a portal link name individually. */
export function subscriptionsOf(pages: Pages): string[] {
  return pages.filter((page) => page.startsWith(ONE)).map((page) => page.slice(ONE.length));
}
