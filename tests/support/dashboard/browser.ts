import { isPresent } from "../needs.ts";
import { fixture } from "../fixture.ts";
import type { Browser, BrowserContext, Page } from "playwright-core";

/** Makes a fixture of tests in a browser. They are skipped if there is no browser, and then nothing is started. */
export function browserFixture<T extends object>(start: () => T | Promise<T>): T {
  return fixture(start, isPresent("chromium"));
}

/** A browser context with a blank page that keeps its window open. */
interface KeptContext {
  readonly context: BrowserContext;
  readonly keeper: Page;
}

/** Contexts that can be used again, by browser and language. Their caches still hold the scripts of the dashboard. */
const free = new WeakMap<Browser, Map<string, Promise<KeptContext | undefined>[]>>();

/**
 * Opens a page that shares its storage with no other open page. Contexts are kept for the next page, because opening one
 * takes more CPU time than most tests. A test that changes something permanent in its context, such as `page.clock`, must
 * close the context instead of the page. With `isFirst` the context is new and has nothing cached.
 */
export async function openPage(
  browser: Browser,
  { locale, isFirst }: { readonly locale: string; readonly isFirst: boolean },
): Promise<Page> {
  const contexts = contextsOf(browser, locale);
  const kept = (isFirst ? undefined : await contexts.pop()) ?? (await newContext(browser, locale));
  const page = await kept.context.newPage();
  page.once("close", () => contexts.push(cleared(kept)));
  return page;
}

function contextsOf(browser: Browser, locale: string): Promise<KeptContext | undefined>[] {
  const byLocale = free.get(browser) ?? new Map<string, Promise<KeptContext | undefined>[]>();
  free.set(browser, byLocale);
  const contexts = byLocale.get(locale) ?? [];
  byLocale.set(locale, contexts);
  return contexts;
}

async function newContext(browser: Browser, locale: string): Promise<KeptContext> {
  // Reduced motion disables animations: an element that fades in fails the contrast check for a moment.
  const context = await browser.newContext({ locale, reducedMotion: "reduce" });
  return { context, keeper: await context.newPage() };
}

/**
 * Clears what the last page left in a context; undefined if the context was closed or another page is still open in
 * it.
 */
async function cleared(kept: KeptContext): Promise<KeptContext | undefined> {
  const { context, keeper } = kept;
  if (keeper.isClosed() || context.pages().length > 1) return undefined;
  try {
    await context.clearCookies();
    await context.clearPermissions();
    await context.setOffline(false);
    await context.unrouteAll();
    return kept;
  } catch {
    return undefined;
  }
}
