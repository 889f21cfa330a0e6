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

/** Everything that only who is signed in needs: the sign-in does not wait for it. */
export function Page() {
  const areas = areasOf(useSession());
  // What was said to somebody who has left is nothing for the next one.
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
