import { useState } from "react";
import { Redirect, Route, Router, Switch } from "wouter";

import { AREAS } from "./areas.ts";
import { SignIn } from "./pages/sign-in/sign-in.tsx";
import { Welcome } from "./pages/sign-in/welcome.tsx";
import { takeInvitation } from "./session/invitation.ts";
import { useSessionState } from "./session/session.tsx";
import { ActingBanner } from "./shell/acting-banner.tsx";
import { Shell } from "./shell/shell.tsx";
import { PageBoundary } from "./page-boundary.tsx";
import { NotFound } from "./ui/states.tsx";

/** Whoever is not signed in sees the sign-in at every path, and goes on where they wanted to go. */
export function App() {
  const { session } = useSessionState();
  const [invitation, setInvitation] = useState(takeInvitation);
  if (invitation !== undefined)
    return <Welcome invitation={invitation} onDone={() => setInvitation(undefined)} />;
  if (session === undefined) return <SignIn />;
  const isActing = session.origin !== undefined;
  const areas = AREAS.filter(
    ({ roles, isPersonal = false }) =>
      roles.some((role) => role === session.user.role) && !(isActing && isPersonal),
  );
  return (
    <Router base="/dashboard">
      <Shell areas={areas}>
        <ActingBanner />
        <PageBoundary>
          <Switch>
            {areas.flatMap(({ pages }) =>
              Object.entries(pages).map(([path, Page]) => (
                <Route key={path} path={path} component={Page} />
              )),
            )}
            {areas.flatMap(({ nested = {} }) =>
              Object.entries(nested).map(([path, Page]) => (
                <Route key={path} path={path} nest component={Page} />
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
