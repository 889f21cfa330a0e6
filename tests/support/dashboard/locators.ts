import type { FrameLocator, Locator, Page } from "playwright-core";

// Locators of the parts that every page of the dashboard has.

/** Something that contains elements: a page, a frame, or an element. */
type View = Page | FrameLocator | Locator;

/** Finds a button by its whole label, or by a pattern. */
export const button = (view: View, name: string | RegExp) =>
  view.getByRole("button", { name, exact: typeof name === "string" });

/** Finds a button of the open dialog by its whole label. */
export const inDialog = (page: Page, name: string) => button(page.getByRole("dialog"), name);

/** Confirms the open dialog by the button with this label. */
export const confirm = (page: Page, label: string) => inDialog(page, label).click();

/** Finds the title of a page. */
export const heading = (view: View, name: string | RegExp) =>
  view.getByRole("heading", { name, level: 1 });

/** Finds the rows of a table that contain a text. */
export const rowOf = (view: View, text: string) => view.getByRole("row").filter({ hasText: text });

/** Finds the main navigation. */
export const navigation = (page: Page) => page.getByRole("navigation", { name: "Main" });

/** Opens a page by its link in the main navigation. */
export const go = (page: Page, name: string) =>
  navigation(page).getByRole("link", { name, exact: true }).click();

export const clipboard = (page: Page) => page.evaluate<string>("navigator.clipboard.readText()");

/** Signs the user out by the menu of the account. */
export async function signOut(page: Page): Promise<void> {
  await button(page, /^Account of/).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByText("You are signed out").waitFor();
}

/** The buttons of a subscription that change it, send something, or show its secret, by the tab that shows them. */
export const SUBSCRIPTION_BUTTONS = {
  Overview: ["Test", "Check endpoint"],
  Deliveries: ["Test", "Check endpoint", "Resend undelivered…"],
  Settings: [
    "Test",
    "Check endpoint",
    "Save",
    "Disable…",
    "Delete the subscription…",
    "View secret",
    "Rotate the secret…",
  ],
} as const;

type SubscriptionTab = keyof typeof SUBSCRIPTION_BUTTONS;

/** Content by which each tab of a subscription is recognized, whatever its user may do. */
const TAB_CONTENT = {
  Overview: (view: View) => view.getByText("Success rate (24 h)"),
  Deliveries: (view: View) => button(view, "Export"),
  Settings: (view: View) => view.getByText("Fingerprint").first(),
} as const;

/** Opens a tab of a subscription, and lists those of `SUBSCRIPTION_BUTTONS` that it shows. */
export async function buttonsOnTab(view: View, tab: SubscriptionTab): Promise<string[]> {
  await view.getByRole("tab", { name: tab }).click();
  await TAB_CONTENT[tab](view).waitFor();
  const found: string[] = [];
  for (const name of new Set(Object.values(SUBSCRIPTION_BUTTONS).flat()))
    if ((await button(view, name).count()) > 0) found.push(name);
  return found;
}
