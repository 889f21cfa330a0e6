import { Notifications } from "@mantine/notifications";
import { useEffect } from "react";
import { Redirect, Route, Router, Switch } from "wouter";

import { areasOf } from "./areas.ts";
import { PageBoundary } from "./shell/page.tsx";
import { Search } from "./search/search.tsx";
import { useSession } from "./session/session.tsx";
import { ActingBanner, Shell } from "./shell/shell.tsx";
import { notify } from "./ui/notify.ts";
import { NotFound } from "./ui/states.tsx";

/** Renders all pages that need a signed-in user. A separate chunk, so that the sign-in page does not load this code. */
export function Page() {
  const areas = areasOf(useSession());
  // Removes notifications at sign-out, so that the next user does not see them.
  useEffect(() => () => notify.clear(), []);
  return (
    <Router base="/dashboard">
      <Notifications position="bottom-right" />
      <Shell areas={areas} search={<Search areas={areas} />}>
        <ActingBanner />
        <PageBoundary>
          <Switch>
            {areas.flatMap(({ pages }) =>
              Object.entries(pages).map(([path, component]) => (
                <Route key={path} path={path} component={component} />
              )),
            )}
            {areas.flatMap(({ nested = {} }) =>
              Object.entries(nested).map(([path, component]) => (
                <Route key={path} path={path} nest component={component} />
              )),
            )}
            <Route path="/">
              <Redirect to={areas[0]?.path ?? "/keys"} replace />
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </PageBoundary>
      </Shell>
    </Router>
  );
}
