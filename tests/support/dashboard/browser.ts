import type { Browser, BrowserContext, Page } from "playwright-core";

/** A context, with the page that keeps its window open. */
interface Place {
  readonly context: BrowserContext;
  readonly keeper: Page;
}

/** By browser and language: where a page was closed, with the scripts that were cached there. */
const free = new WeakMap<Browser, Map<string, Promise<Place | undefined>[]>>();

/**
 * A page that shares its storage with no other that is open. A context and its window take more of a processor than most
 * tests, so that they are kept for the next page. Who changed what a context cannot be rid of, as `page.clock` does,
 * closes the context in place of the page. With `isFirst` nothing is cached yet.
 */
export async function openPage(
  browser: Browser,
  { locale, isFirst }: { readonly locale: string; readonly isFirst: boolean },
): Promise<Page> {
  const places = placesOf(browser, locale);
  const place = (isFirst ? undefined : await places.pop()) ?? (await newPlace(browser, locale));
  const page = await place.context.newPage();
  page.once("close", () => places.push(cleared(place)));
  return page;
}

function placesOf(browser: Browser, locale: string): Promise<Place | undefined>[] {
  const byLocale = free.get(browser) ?? new Map<string, Promise<Place | undefined>[]>();
  free.set(browser, byLocale);
  const places = byLocale.get(locale) ?? [];
  byLocale.set(locale, places);
  return places;
}

async function newPlace(browser: Browser, locale: string): Promise<Place> {
  // What is on its way in is too faint to read for a moment.
  const context = await browser.newContext({ locale, reducedMotion: "reduce" });
  return { context, keeper: await context.newPage() };
}

/** Without what the last page left; nothing if it was closed altogether, or a tab of that page lives on. */
async function cleared(place: Place): Promise<Place | undefined> {
  const { context, keeper } = place;
  if (keeper.isClosed() || context.pages().length > 1) return undefined;
  try {
    await context.clearCookies();
    await context.clearPermissions();
    await context.setOffline(false);
    await context.unrouteAll();
    return place;
  } catch {
    return undefined;
  }
}
