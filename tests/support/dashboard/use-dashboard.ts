import { afterEach } from "bun:test";
import type { Browser, Page } from "playwright-core";

import type { TestApi } from "../api.ts";
import { isPresent } from "../needs.ts";
import { createDatabase, type TestDatabase } from "../postgres.ts";
import { addTenants, type Tenants } from "../tenants.ts";
import { browserFixture } from "./browser.ts";
import { openBrowser } from "./chromium.ts";
import {
  type Look,
  openDashboard,
  type Opened,
  openSignedIn,
  serveDashboard,
} from "./dashboard.ts";

/** How a page is opened. */
interface VisitOptions extends Look {
  /** The user who is signed in: the owner of the first partner by default, nobody if null. */
  readonly email?: string | null;
  readonly password?: string;
}

/** Opens pages of a dashboard, and closes them. */
export interface Visits {
  /** Opens a path below `/dashboard`. */
  open(path: string, visit?: VisitOptions): Promise<Opened>;
  closePages(): Promise<void>;
}

/** The API that serves the dashboard for two partners, and a browser. */
export interface Dashboard extends Visits {
  readonly api: TestApi;
  readonly root: string;
  readonly browser: Browser;
  readonly database: TestDatabase;
  readonly tenants: Tenants;
  stop(): Promise<void>;
}

type Options = Omit<Parameters<typeof serveDashboard>[0], "db">;

/** Starts a dashboard for the tests of a file, and closes its pages after each test. */
export function useDashboard(options: Options = {}): Dashboard {
  return closingPages(browserFixture(() => startDashboard(options)));
}

async function startDashboard(options: Options): Promise<Dashboard> {
  const database = await createDatabase();
  const tenants = await addTenants(database.db);
  const { api, root } = await serveDashboard({ ...options, db: database.db });
  const browser = await openBrowser();
  return {
    api,
    root,
    browser,
    database,
    tenants,
    ...visitsOf(browser, root, tenants.partners[0].owner.email),
    async stop() {
      await browser.close();
      await api.stop();
      await database.drop();
    },
  };
}

/** Closes the pages of a dashboard after each test. */
export function closingPages<World extends Visits>(world: World): World {
  afterEach(async () => {
    if (isPresent("chromium")) await world.closePages();
  });
  return world;
}

/** Opens pages of the dashboard at `root` in a browser, by default as the user of the email `owner`. */
export function visitsOf(browser: Browser, root: string, owner: string): Visits {
  const pages: Page[] = [];
  return {
    async open(path, { email = owner, ...look } = {}) {
      const visit = { root, path, ...look };
      const opened =
        email === null
          ? await openDashboard(browser, visit)
          : await openSignedIn(browser, { ...visit, email });
      pages.push(opened.page);
      return opened;
    },
    async closePages() {
      for (const page of pages.splice(0)) await page.close();
    },
  };
}
