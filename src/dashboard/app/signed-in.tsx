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

/** Renders everything that needs a signed-in user. It is a separate chunk, so that the sign-in does not load it. */
export function Page() {
  const areas = areasOf(useSession());
  // Notifications for one user are removed before the next user signs in.
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
