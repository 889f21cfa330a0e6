import { ULID_PATTERN } from "../http/text.ts";

/*
 * What a portal link opens (contract 6.20), as the paths of the dashboard: `webhooks` with all subscriptions, and
 * `webhooks/{id}` with one.
 */

type Pages = readonly string[];
/** Whether a route is of the pages that a link opens. */
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

/** The subscriptions that pages name one by one. */
export function subscriptionsOf(pages: Pages): string[] {
  return pages.filter((page) => page.startsWith(ONE)).map((page) => page.slice(ONE.length));
}
