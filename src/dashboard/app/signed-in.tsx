import { Button, Text } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { Notifications } from "@mantine/notifications";
import { useEffect, lazy, Suspense } from "react";
import { Redirect, Route, Router, Switch } from "wouter";

import { areasOf } from "./areas.ts";
import { useSession, useSessionState } from "./session/session.tsx";
import { ActingBanner } from "./shell/acting.tsx";
import { page, PageBoundary, type Area } from "./shell/page.tsx";
import css from "./shell/shell.module.css";
import { Shell } from "./shell/shell.tsx";
import { Dialog } from "./ui/dialog.tsx";
import { Icon } from "./ui/icon.tsx";
import { notify } from "./ui/notify.ts";
import { NotFound } from "./ui/states.tsx";

/** Form for the proof that a request waits for. It is a separate script chunk, because few requests demand a proof. */
const StepUp = page(() => import("./factors/step-up.tsx"));

/**
 * Renders all pages that need a signed-in user. It is a separate chunk, so that the sign-in page does not load this
 * code.
 */
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
            {/* The tab of a subscription is a parameter of its address. */}
            <Route path="/webhooks/:id/:tab">
              {({ id, tab }) => <Redirect to={`/webhooks/${id}?tab=${tab}`} replace />}
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </PageBoundary>
      </Shell>
      <StepUpDialog />
    </Router>
  );
}

/**
 * Dialog that asks for a proof of a second factor while a request of any page waits for it. It lies above the
 * dialog that sent the request.
 */
function StepUpDialog() {
  const { asked } = useSessionState();
  const cancel = () => asked?.answer(false);
  return (
    <Dialog
      opened={asked !== undefined}
      onClose={cancel}
      title="Confirm that it is you"
      zIndex="calc(var(--mantine-z-index-modal) + 1)"
      centered
    >
      {asked && <StepUp asked={asked} />}
    </Dialog>
  );
}

const Palette = lazy(() =>
  import("./search/palette.tsx").then(({ Palette: one }) => ({ default: one })),
);

/** Search button in the header of every page. Ctrl-K and Cmd-K open the search dialog, too. */
function Search({ areas }: { readonly areas: readonly Area[] }) {
  const [opened, { open, close }] = useDisclosure();
  useHotkeys([["mod+K", open]], []);
  return (
    <>
      <Button
        variant="default"
        size="xs"
        className={css.searchButton}
        aria-keyshortcuts="Control+K Meta+K"
        leftSection={<Icon name="search" size={16} />}
        onClick={open}
      >
        <span className="unseen-on-phones">Search</span>
        <Text span size="xs" c="dimmed" ml={6} visibleFrom="sm" aria-hidden>
          Ctrl K
        </Text>
      </Button>
      {opened && (
        <Suspense>
          <Palette areas={areas} onClose={close} />
        </Suspense>
      )}
    </>
  );
}
